#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python -m venv $TMPDIR/venv
. $TMPDIR/venv/bin/activate
pip install -q -e .
python -m mytool run --config c.toml
