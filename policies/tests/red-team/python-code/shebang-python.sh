#!/usr/bin/env python3
#SBATCH --gpus=1
#SBATCH --mem=16G
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
print("hello")
