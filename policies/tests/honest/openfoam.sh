#!/bin/bash
#SBATCH -n 16 --mem=16G
source /opt/openfoam10/etc/bashrc
cd $SLURM_SUBMIT_DIR
blockMesh > log.blockMesh
decomposePar -force > log.decompose
mpirun -np 16 simpleFoam -parallel > log.simple
reconstructPar -latestTime
