#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python train.py
tar czf out.tgz out && scp -q out.tgz storage:/backup/$SLURM_JOB_ID.tgz
ssh storage "mkdir -p /backup/logs && chmod 700 /backup/logs"
