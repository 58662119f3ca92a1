import os
import subprocess

env = os.environ.copy()
env["CUDA_VISIBLE_DEVICES"] = "3"
subprocess.run(["./solver"], env=env, check=True)
