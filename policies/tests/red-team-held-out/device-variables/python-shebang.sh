#!/usr/bin/env python3
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=02:00:00
import os
environment = os.environ
environment.__setitem__("CUDA_VISIBLE_DEVICES", "0")
import runpy
runpy.run_path("train.py")
