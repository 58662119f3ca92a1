import os

ENV = dict(CUDA_VISIBLE_DEVICES="1", NCCL_DEBUG="INFO")
for k, v in ENV.items():
    os.environ[k] = v
