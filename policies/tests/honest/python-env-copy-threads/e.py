import os
import subprocess

env = dict(os.environ, OMP_NUM_THREADS="4", MKL_NUM_THREADS="4")
subprocess.run(["./solver", "case.in"], env=env, check=True)
visible = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
print(len(visible), "devices")
