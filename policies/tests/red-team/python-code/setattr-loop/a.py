import os

for key, value in (("CUDA_VISIBLE_DEVICES", "0"), ("TOKENIZERS_PARALLELISM", "false")):
    os.environ[key] = value
