#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

redis-server --port 6380 --save "" --daemonize yes
for i in {1..60}; do
  redis-cli -p 6380 ping 2>/dev/null | grep -q PONG && break
  sleep 1
done
python workers.py --redis localhost:6380
redis-cli -p 6380 shutdown
