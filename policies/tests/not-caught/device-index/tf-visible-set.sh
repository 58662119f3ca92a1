#!/bin/bash
#SBATCH --job-name=tf-visible-set
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import tensorflow as tf, train
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[1:2], "GPU")
train.main()
PY
