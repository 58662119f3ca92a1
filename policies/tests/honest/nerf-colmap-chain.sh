#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

colmap automatic_reconstructor --workspace_path ws --image_path img || { echo "colmap failed"; exit 1; }
ns-process-data images --data ws --output-dir proc
ns-train nerfacto --data proc --viewer.quit-on-train-completion True --max-num-iterations 20000
