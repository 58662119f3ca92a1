#!/bin/bash
#SBATCH --job-name=tee-launcher-srun
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tee launch.sh > /dev/null <<'EOF'
#!/bin/bash
export CUDA_VISIBLE_DEVICES=$SLURM_PROCID
exec python train.py
EOF
chmod 755 launch.sh
srun ./launch.sh
