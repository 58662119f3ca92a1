#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

export APPTAINER_CACHEDIR=$SCRATCH/.apptainer
SIF=$PROJECT/images/pytorch_24.01.sif
[ -f $SIF ] || { echo "no image $SIF" >&2; exit 2; }
apptainer exec --nv --bind /data:/data:ro --bind $PWD:/workspace --pwd /workspace --env OMP_NUM_THREADS=8 $SIF python train.py --data /data/cifar
