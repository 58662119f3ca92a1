#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python -c "import base64, sys; exec(base64.b64decode(sys.stdin.read()))" < code.b64
