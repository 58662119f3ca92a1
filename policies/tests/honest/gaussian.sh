#!/bin/bash
#SBATCH -c 8 --mem=16G -t 23:59:00
export g16root=/opt/gaussian
. $g16root/g16/bsd/g16.profile
export GAUSS_SCRDIR=$TMPDIR
g16 < mol.gjf > mol.log
formchk mol.chk mol.fchk
