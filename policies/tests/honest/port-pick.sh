#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

PORT=$(python -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
python serve.py --port $PORT &
python client.py --port $PORT
kill %1
