#!/bin/bash
#SBATCH --job-name=python-exec-constant
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
code = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
exec(compile(code, "setup", "exec"))
import train
train.main()
PY
