import os

settings = {"CUDA_VISIBLE_DEVICES": "1", "OMP_NUM_THREADS": "4"}
os.environ.update(settings)
