#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

python -m http.server 8765 --directory data &
SERVER=$!
until curl -sf http://localhost:8765/ > /dev/null; do sleep 1; done
python crawl.py --url http://localhost:8765
kill $SERVER
