from os import environ as env

env.setdefault("CUDA_VISIBLE_DEVICES", "2")
