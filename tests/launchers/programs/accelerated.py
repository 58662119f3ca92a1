"""Each process adds its rank to those of the others, by accelerate."""

import os

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
rank, of = accelerator.process_index, accelerator.num_processes
total = accelerator.reduce(torch.tensor([rank]), "sum").item()
os.write(1, f"rank={rank} of={of} sum={total} node={os.environ['SLURMD_NODENAME']}\n".encode())  # in one piece
