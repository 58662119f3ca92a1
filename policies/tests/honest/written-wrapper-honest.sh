#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cat > wrap.sh <<'EOF'
#!/bin/bash
echo "rank $SLURM_PROCID on $(hostname) sees $CUDA_VISIBLE_DEVICES"
exec "$@"
EOF
chmod +x wrap.sh
srun ./wrap.sh python train.py
