#!/bin/bash
#SBATCH -n 8 --mem=12G
for ecut in 30 40 50 60; do
cat > si.$ecut.in <<EOF
&control
  calculation='scf', prefix='si', pseudo_dir='./pseudo', outdir='$TMPDIR'
/
&system
  ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=$ecut
/
EOF
mpirun pw.x -in si.$ecut.in > si.$ecut.out
grep '!' si.$ecut.out | awk -v e=$ecut '{print e, $5}' >> energy.dat
done
