#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

podman run --rm -e NVIDIA_VISIBLE_DEVICES=0 -v "$PWD":/work img python /work/t.py
