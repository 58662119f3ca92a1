#!/bin/bash
#SBATCH --job-name=python-asyncio
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import asyncio
async def go():
    p = await asyncio.create_subprocess_exec("sbatch", "big.sh")
    await p.wait()
asyncio.run(go())
PY
