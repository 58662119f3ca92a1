#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
write_wrapper() {
  cat <<'EOF' > "$1"
#!/bin/bash
export CUDA_VISIBLE_DEVICES=$((SLURM_LOCALID))
exec "$@"
EOF
}
write_wrapper w.sh
chmod +x w.sh
srun ./w.sh python t.py
