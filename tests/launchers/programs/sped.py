"""Each process adds its rank to those of the others, by deepspeed."""

import os

import deepspeed
import torch
import torch.distributed as dist

deepspeed.init_distributed("gloo")
total = torch.tensor([dist.get_rank()])
dist.all_reduce(total)
os.write(
    1,
    f"rank={dist.get_rank()} of={dist.get_world_size()} sum={total.item()} node={os.environ['SLURMD_NODENAME']}\n".encode(),
)  # in one piece
dist.destroy_process_group()  # together: who left first would take its connections from the others
