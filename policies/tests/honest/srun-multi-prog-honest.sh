#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cat > mp.conf <<'EOF'
0 ./server --port 9000
1-3 ./client --rank %t
EOF
srun -n 4 --multi-prog mp.conf
