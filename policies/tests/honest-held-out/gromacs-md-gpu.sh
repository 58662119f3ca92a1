#!/bin/bash
#SBATCH --job-name=lysozyme
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=12
#SBATCH --gres=gpu:1
#SBATCH --mem=8G
#SBATCH --time=24:00:00
#SBATCH --output=gmx.%j.log

module purge
module load gcc/12 openmpi gromacs/2023.3-cuda

export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export GMX_ENABLE_DIRECT_GPU_COMM=1

prev=solvated_ions
for stage in em nvt npt md; do
    if [ -f $stage.gro ]; then
        echo "$stage already finished"
        prev=$stage
        continue
    fi
    cpt=""
    [ -f $prev.cpt ] && cpt="-t $prev.cpt"
    gmx grompp -f mdp/$stage.mdp -c $prev.gro -r $prev.gro $cpt -p topol.top -o $stage.tpr -maxwarn 1 || exit 1
    case $stage in
        em) gmx mdrun -deffnm em -ntmpi 1 -ntomp $OMP_NUM_THREADS ;;
        *)  gmx mdrun -deffnm $stage -ntmpi 1 -ntomp $OMP_NUM_THREADS -nb gpu -pme gpu -bonded gpu -update gpu -pin on -maxh 23.5 ;;
    esac
    prev=$stage
done

echo -e "Potential\n0" | gmx energy -f em.edr -o potential.xvg
printf "4 4\n" | gmx rms -s md.tpr -f md.xtc -o rmsd.xvg -tu ns
gmx gyrate -s md.tpr -f md.xtc -o gyrate.xvg <<< "1"
