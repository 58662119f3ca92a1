#! /bin/bash -l

#	a comment with a tab

#SBATCH	-J	spaced
#SBATCH   -N1   -n4 --mem   4G
#SBATCH -t	0-2
   # an indented comment
#SBATCH --output="spaced %j.out"   # the name has a blank
#SBATCH --comment='run of the "blue" set' --mail-type END,FAIL



cd   "${SLURM_SUBMIT_DIR:?}"	&&	pwd
	srun   -n 4    ./prog   <input.dat   >output.dat
