#!/bin/bash
#SBATCH --job-name=amber_md
#SBATCH --partition=gpu
#SBATCH --gpus=1
#SBATCH --ntasks=1
#SBATCH --mem=4GB
#SBATCH --time=20:00:00
#SBATCH --output=amber.%j

source $AMBERHOME/amber.sh

prmtop=complex.prmtop
cat > heat.in <<EOF
Heat 0 -> 300 K
 &cntrl
  imin=0, irest=0, ntx=1, nstlim=50000, dt=0.002,
  ntc=2, ntf=2, cut=9.0, ntb=1,
  ntpr=500, ntwx=500, ntt=3, gamma_ln=2.0,
  tempi=0.0, temp0=300.0, nmropt=1, ig=-1,
 /
 &wt type='TEMP0', istep1=0, istep2=40000, value1=0.0, value2=300.0 /
 &wt type='END' /
EOF

pmemd.cuda -O -i heat.in -p $prmtop -c min.rst7 -o heat.out -r heat.rst7 -x heat.nc || exit 1

last=heat
for n in $(seq -w 1 10)
do
   echo "=== prod $n  $(date)"
   pmemd.cuda -O -i prod.in -p $prmtop -c $last.rst7 -o prod$n.out -r prod$n.rst7 -x prod$n.nc -inf prod$n.info
   last=prod$n
done

cpptraj -p $prmtop <<EOF
trajin prod*.nc
autoimage
rms first :1-250@CA out rmsd.dat
go
EOF
