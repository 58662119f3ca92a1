#!/bin/bash
#SBATCH --job-name=sshd
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
/usr/sbin/sshd -D -p 2222 -f "$HOME/.ssh/sshd_config" -h "$HOME/.ssh/id_ed25519"
