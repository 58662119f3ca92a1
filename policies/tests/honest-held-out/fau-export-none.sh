#!/bin/bash -l
#
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=12
#SBATCH --mem=15G
#SBATCH --time=06:00:00
#SBATCH --job-name=elmer
#SBATCH --export=NONE

unset SLURM_EXPORT_ENV
module load elmer/9.0
WORKDIR="${WORK:-$HOME/work}/$SLURM_JOB_ID"
mkdir -p "$WORKDIR" && pushd "$WORKDIR"
cp "$SLURM_SUBMIT_DIR"/{case.sif,ELMERSOLVER_STARTINFO} .
cp -r "$SLURM_SUBMIT_DIR/mesh" .
ElmerGrid 2 2 mesh -partdual -metiskway "$SLURM_NTASKS"
srun ElmerSolver_mpi
popd
