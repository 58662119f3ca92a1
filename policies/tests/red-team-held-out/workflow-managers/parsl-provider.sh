#!/bin/bash
#SBATCH --job-name=parsl-provider
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import SlurmProvider
parsl.load(Config(executors=[HighThroughputExecutor(provider=SlurmProvider("gpu", max_blocks=20))]))
import work
work.run()
PY
