#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

. /opt/spack/share/spack/setup-env.sh
eval "$(spack load --sh hdf5)"
./h5bench conf.json
