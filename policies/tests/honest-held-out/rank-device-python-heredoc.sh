#!/bin/bash
#SBATCH --job-name=ddp-smoke
#SBATCH --nodes=1
#SBATCH --gpus=2
#SBATCH --mem=20G
#SBATCH --time=00:15:00
#SBATCH --output=smoke-%j.log

cat > ddp_smoke_$SLURM_JOB_ID.py <<'EOF'
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ.setdefault("NCCL_DEBUG", "WARN")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
device = torch.device(f"cuda:{local}") if torch.cuda.is_available() else torch.device("cpu")
dist.init_process_group("nccl")
model = DDP(torch.nn.Linear(64, 64).to(device), device_ids=[local])
x = torch.randn(8, 64, device=device)
for step in range(10):
    loss = model(x).pow(2).mean()
    loss.backward()
print(dist.get_rank(), loss.item(), torch.cuda.max_memory_allocated(device) // 2**20, "MiB")
dist.destroy_process_group()
EOF
torchrun --standalone --nproc_per_node=gpu --max-restarts=0 ddp_smoke_$SLURM_JOB_ID.py
