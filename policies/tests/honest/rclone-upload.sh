#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python train.py
rclone copy out/ remote:bucket/$SLURM_JOB_ID --retries 5 --transfers 8
aws s3 sync out/ s3://bucket/$SLURM_JOB_ID/ || echo "upload failed" >&2
