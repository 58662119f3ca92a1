#!/bin/bash
#SBATCH --job-name=tscan
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --gpus=2
#SBATCH --gpu-bind=closest
#SBATCH --mem=24G
#SBATCH --time=18:00:00
#SBATCH --output=logs/tscan.%j

spack env activate -p lammps-gpu
spack load lammps+kokkos

dt=0.002
for T in $(seq 0.7 0.1 1.3); do
    steps=$(echo "200 / $dt" | bc)
    half=$(bc -l <<< "$steps / 2")
    dir=T_$T; mkdir -p $dir
    ( cd $dir && srun lmp -k on g 2 -sf kk -pk kokkos newton on neigh half \
        -var T $T -var dt $dt -var steps ${half%.*} -in ../in.scan )
    echo "T=$T done at $(date -Iseconds)"
done
