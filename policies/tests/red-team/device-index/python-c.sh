#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python -c "import torch; torch.cuda.set_device(2); import train; train.main()"
