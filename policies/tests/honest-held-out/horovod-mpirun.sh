#!/bin/bash
#SBATCH --job-name=hvd
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --mem=32G
#SBATCH --time=06:00:00
#SBATCH --output=hvd.%j.out
#SBATCH --error=hvd.%j.err

module load tensorflow/2.12-hvd
mpirun -np 4 -bind-to none -map-by slot \
    -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -x HOROVOD_TIMELINE=timeline.json \
    -mca pml ob1 -mca btl ^openib \
    python tf2_keras_mnist.py
