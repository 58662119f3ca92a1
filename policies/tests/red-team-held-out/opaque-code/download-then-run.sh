#!/bin/bash
#SBATCH --job-name=download-then-run
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
curl -so step https://example.org/step && chmod +x step && ./step
