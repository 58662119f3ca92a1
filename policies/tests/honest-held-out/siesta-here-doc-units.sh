#!/bin/bash
#SBATCH --ntasks=4 --nodes=1
#SBATCH --mem-per-cpu=1G -J siesta -t 5:00:00
for a in 5.35 5.40 5.45 5.50; do
    mkdir -p a$a; cp Si.psf a$a/
    ( cd a$a
      srun siesta <<EOF > si.out
SystemName   silicon
SystemLabel  si
NumberOfAtoms 2
LatticeConstant $a Ang
%block kgrid_Monkhorst_Pack
  4 0 0 0.5
  0 4 0 0.5
  0 0 4 0.5
%endblock kgrid_Monkhorst_Pack
EOF
    )
done
paste <(printf '%s\n' a5.*) <(grep -h 'siesta:         Total =' a5.*/si.out | awk '{print $4}') > ea.dat
gnuplot -e "set term png; set output 'ea.png'; plot 'ea.dat' using 0:2 with lines"
