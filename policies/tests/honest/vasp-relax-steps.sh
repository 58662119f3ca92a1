#!/bin/bash
#SBATCH --job-name=vasp
#SBATCH --nodes=2 --ntasks-per-node=32
#SBATCH --mem=16G
#SBATCH --time=20:00:00
module load vasp/6.4.1
for step in 1_coarse 2_fine 3_static; do
  mkdir -p $step && cd $step
  cp ../POTCAR ../KPOINTS .
  cp ../INCAR.$step INCAR
  [ -f ../last/CONTCAR ] && cp ../last/CONTCAR POSCAR || cp ../POSCAR .
  srun vasp_std > vasp.out
  if ! grep -q "reached required accuracy" vasp.out && [ $step != 3_static ]; then
    echo "$step did not converge" >&2
    exit 1
  fi
  cd ..
  ln -sfn $step last
done
