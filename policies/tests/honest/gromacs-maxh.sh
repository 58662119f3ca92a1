#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

module load gromacs/2023.2
export GMX_ENABLE_DIRECT_GPU_COMM=1
if [ -f md.cpt ]; then
  gmx mdrun -deffnm md -cpi md.cpt -maxh 3.9 -ntmpi 1 -ntomp $SLURM_CPUS_PER_TASK -nb gpu -pme gpu
else
  gmx grompp -f md.mdp -c npt.gro -t npt.cpt -p topol.top -o md.tpr
  gmx mdrun -deffnm md -maxh 3.9 -ntmpi 1 -ntomp $SLURM_CPUS_PER_TASK -nb gpu -pme gpu
fi
