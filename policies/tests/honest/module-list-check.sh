#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

module --force purge
module load StdEnv/2023 gcc cuda/12.2 cudnn || { echo "no modules" >&2; exit 1; }
module list 2>&1
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
pip install --no-index --upgrade pip
pip install --no-index -r requirements.txt
python train.py
