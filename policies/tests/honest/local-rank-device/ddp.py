import os

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"] if "LOCAL_RANK" in os.environ else os.environ["SLURM_LOCALID"])
torch.cuda.set_device(local_rank)
device = torch.device(f"cuda:{local_rank}")
dist.init_process_group("nccl")
model = torch.nn.Linear(2, 2).to(device)
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
print("CUDA_VISIBLE_DEVICES=", os.environ.get("CUDA_VISIBLE_DEVICES"))
for epoch in range(10):
    try:
        loss = model(torch.ones(2, device=device)).sum()
        loss.backward()
    except RuntimeError as error:
        if "out of memory" in str(error):
            torch.cuda.empty_cache()
            continue
        raise
