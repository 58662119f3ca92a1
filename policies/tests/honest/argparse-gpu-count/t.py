import argparse

import torch

p = argparse.ArgumentParser()
p.add_argument("--gpus", type=int, default=1)
p.add_argument("--device", default="cuda")
a = p.parse_args()
model = torch.nn.Linear(1, 1).to(a.device)
if torch.cuda.device_count() < a.gpus:
    raise SystemExit("too few GPUs")
