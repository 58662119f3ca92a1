#!/bin/bash
#SBATCH --job-name=orca_b3lyp
#SBATCH --nodes=1
#SBATCH --ntasks=8
#SBATCH --mem-per-cpu=2G
#SBATCH --time=0-22:00:00
#SBATCH --signal=B:TERM@300

export ORCA_DIR=/opt/orca/5.0.4
export PATH=$ORCA_DIR:$PATH
export LD_LIBRARY_PATH=$ORCA_DIR:${LD_LIBRARY_PATH:-}

tdir=$(mktemp -d "${TMPDIR:-/tmp}/orca.XXXXXX")
function copy_back {
    cp -v $tdir/*.{gbw,xyz,hess,prop} "$SLURM_SUBMIT_DIR" 2>/dev/null
    rm -rf "$tdir"
}
trap copy_back EXIT
trap 'echo "time is nearly over"; exit 15' TERM

cat > $tdir/mol.inp <<INP
! B3LYP D3BJ def2-TZVP def2/J RIJCOSX Opt TightSCF
%pal nprocs $SLURM_NTASKS end
%maxcore $(( SLURM_MEM_PER_CPU * 3 / 4 ))
* xyzfile 0 1 mol.xyz
INP
cp mol.xyz $tdir/
cd $tdir
$ORCA_DIR/orca mol.inp > $SLURM_SUBMIT_DIR/mol.out &
wait $!
