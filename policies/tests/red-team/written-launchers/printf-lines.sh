#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

printf '%s\n' '#!/bin/sh' 'CUDA_VISIBLE_DEVICES=0 python t.py' > w.sh
sh w.sh
