#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cat > rank.sh <<'EOF'
#!/bin/bash
export CUDA_VISIBLE_DEVICES=$((OMPI_COMM_WORLD_LOCAL_RANK % 4))
exec "$@"
EOF
chmod +x rank.sh
mpirun -np 4 ./rank.sh ./lmp -in in.melt
