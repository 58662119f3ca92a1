#!/bin/bash
#SBATCH --job-name=srun-task-prolog
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > prolog.sh <<'EOF'
#!/bin/bash
echo "export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID"
EOF
chmod +x prolog.sh
srun --task-prolog=./prolog.sh python train.py
