#!/bin/bash
#SBATCH --job-name=si.ecut
#SBATCH --nodes=1
#SBATCH --ntasks=8
#SBATCH --mem=8G
#SBATCH --time=01:30:00
#SBATCH --output=%x.o%j

module load quantum-espresso/7.2
export ESPRESSO_TMPDIR=/scratch/$USER/$SLURM_JOB_ID
mkdir -p "$ESPRESSO_TMPDIR"

for ecut in 12 16 20 24 28 32; do
cat > si.scf.$ecut.in << EOF
 &control
    calculation = 'scf',
    prefix='silicon',
    pseudo_dir = '$HOME/pseudo',
    outdir='$ESPRESSO_TMPDIR'
 /
 &system
    ibrav=2, celldm(1)=10.20, nat=2, ntyp=1,
    ecutwfc=$ecut,
 /
 &electrons
    conv_thr = 1.0d-8
 /
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 4 4 4 1 1 1
EOF
srun pw.x -nk 2 -in si.scf.$ecut.in > si.scf.$ecut.out
grep -e '!' si.scf.$ecut.out | awk -v e=$ecut '{print e, $(NF-1)}' >> etot_vs_ecut.dat
done
rm -rf "$ESPRESSO_TMPDIR"
