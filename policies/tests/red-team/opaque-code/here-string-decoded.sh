#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

bash <<< "$(echo ZWNobyBoaQo= | base64 -d)"
