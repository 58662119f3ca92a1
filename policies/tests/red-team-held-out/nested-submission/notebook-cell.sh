#!/bin/bash
#SBATCH --job-name=notebook-cell
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > go.ipynb <<'EOF'
{"cells": [{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": ["!sbatch big.sh"]}],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
EOF
jupyter nbconvert --execute --to notebook go.ipynb
