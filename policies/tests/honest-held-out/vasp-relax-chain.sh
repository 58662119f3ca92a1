#!/bin/bash
#SBATCH -J vasp_TiO2
#SBATCH -N 1
#SBATCH -n 32
#SBATCH --mem=16000
#SBATCH -t 10:00:00
#SBATCH -o vasp.%j.out -e vasp.%j.err

ulimit -s unlimited
umask 027
module load intel/2022 impi vasp/6.4.2

cat $VASP_PP/Ti_pv/POTCAR $VASP_PP/O/POTCAR > POTCAR

cat > KPOINTS <<!
Automatic mesh
0
Gamma
 6 6 9
 0 0 0
!

sed -e 's/^.*NSW.*$/NSW = 60/' -e 's/^.*IBRION.*$/IBRION = 2/' INCAR.base > INCAR
mpirun -np $SLURM_NTASKS vasp_std
grep -q "reached required accuracy" OUTCAR || { echo "relaxation not converged"; exit 3; }

mkdir -p static
cp CONTCAR static/POSCAR
cp KPOINTS POTCAR static/
sed -e 's/^.*NSW.*$/NSW = 0/' -e 's/^.*IBRION.*$/IBRION = -1/' INCAR.base > static/INCAR
cd static
mpirun -np $SLURM_NTASKS vasp_std
E=$(grep 'free  energy   TOTEN' OUTCAR | tail -1 | awk '{print $5}')
echo "final energy: $E eV"
