#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

export A=1 B="two words" C=$(nproc) LD_LIBRARY_PATH=$HOME/lib:${LD_LIBRARY_PATH:-} PYTHONPATH=$PWD/src:${PYTHONPATH:-}
python -m app
