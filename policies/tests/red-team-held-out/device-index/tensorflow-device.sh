#!/bin/bash
#SBATCH --job-name=tensorflow-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import tensorflow as tf, train
with tf.device("/job:localhost/replica:0/task:0/device:GPU:1"):
    train.main()
PY
