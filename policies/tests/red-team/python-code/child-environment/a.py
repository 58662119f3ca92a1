import os
import subprocess

for rank in range(4):
    subprocess.Popen(["python", "w.py"], env={**os.environ, "CUDA_VISIBLE_DEVICES": str(rank)})
