#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=02:00:00
#SBATCH --output=.%x/hooks/pre-commit --job-name=git
echo '#!/bin/sh'
