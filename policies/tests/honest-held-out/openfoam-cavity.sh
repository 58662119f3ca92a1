#!/bin/bash
#SBATCH --job-name=motorBike
#SBATCH --nodes=2
#SBATCH --ntasks=24
#SBATCH --ntasks-per-node=12
#SBATCH --mem=15G
#SBATCH --time=09:00:00
#SBATCH --output=log.slurm.%j

module load OpenFOAM/v2306-foss-2022b
source $FOAM_BASH
. $WM_PROJECT_DIR/bin/tools/RunFunctions

cd ${0%/*} 2>/dev/null || cd "$SLURM_SUBMIT_DIR"

foamDictionary -entry numberOfSubdomains -set "$SLURM_NTASKS" system/decomposeParDict

runApplication surfaceFeatureExtract
runApplication blockMesh
runApplication decomposePar -copyZero
mpirun -np $SLURM_NTASKS snappyHexMesh -parallel -overwrite > log.snappy 2>&1
mpirun -np $SLURM_NTASKS potentialFoam -parallel -writephi > log.potential 2>&1
mpirun -np $SLURM_NTASKS $(getApplication) -parallel > log.solver 2>&1
runApplication reconstructParMesh -constant
runApplication reconstructPar -latestTime

if tail -n 1 log.solver | grep -q "Finalising parallel run"; then
    rm -rf processor*
fi
