#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

cat > mp.conf <<'EOF'
0 env CUDA_VISIBLE_DEVICES=0 python a.py
1 env CUDA_VISIBLE_DEVICES=1 python b.py
EOF
srun -n 2 --multi-prog mp.conf
