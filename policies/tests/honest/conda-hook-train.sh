#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
#SBATCH --job-name=bert
eval "$(conda shell.bash hook)"
conda activate nlp
which python
python --version
pip list | grep -i torch
python -u finetune.py --model bert-base-uncased --task mnli --out runs/$SLURM_JOB_ID 2>&1 | tee logs/mnli.$SLURM_JOB_ID.log
exit ${PIPESTATUS[0]}
