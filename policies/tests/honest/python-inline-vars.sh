#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

N=$(python -c "import math; print(math.ceil(1000 / 7))")
EPOCHS=$(python3 -c 'import json; print(json.load(open("c.json"))["epochs"])')
python train.py --n $N --epochs $EPOCHS
