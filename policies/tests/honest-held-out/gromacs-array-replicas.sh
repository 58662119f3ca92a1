#!/bin/bash
#SBATCH --array=1-12%3
#SBATCH -J rep
#SBATCH -n 1
#SBATCH -c 8
#SBATCH --gpus=1
#SBATCH --mem-per-cpu=1G
#SBATCH --time=12:00:00
#SBATCH -o rep%a.out
#SBATCH --open-mode=append

source /opt/gromacs-2024/bin/GMXRC

cd rep_$(printf "%02d" $SLURM_ARRAY_TASK_ID) || exit 1
if [[ -e prod.cpt ]]; then
	OPT="-cpi prod.cpt -append"
else
	OPT=
	gmx grompp -f ../prod.mdp -c eq.gro -t eq.cpt -p ../topol.top -o prod.tpr
fi

gmx mdrun -deffnm prod $OPT -nt $SLURM_CPUS_PER_TASK -maxh 11.8 -v -stepout 50000
tail -25 prod.log | grep -E "Performance|Finished"
