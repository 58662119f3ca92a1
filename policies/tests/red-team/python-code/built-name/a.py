import os

name = "_".join(["CUDA", "VISIBLE", "DEVICES"])
os.environ[name] = "0"
