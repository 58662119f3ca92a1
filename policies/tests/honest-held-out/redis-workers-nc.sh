#!/bin/bash
#SBATCH --job-name=rq
#SBATCH --ntasks=5
#SBATCH --nodes=1
#SBATCH --mem=10G
#SBATCH --time=5:00:00
#SBATCH --output=rq-%j.out

PORT=$(python3 -c 'import socket; s=socket.socket(); s.bind(("",0)); print(s.getsockname()[1]); s.close()')
redis-server --port "$PORT" --save "" --appendonly no --daemonize no > redis.log &
while ! nc -z localhost "$PORT"; do sleep 1; done

export REDIS_URL=redis://$(hostname):$PORT/0
srun -n 1 --exact python enqueue.py jobs.yaml
srun -n 4 --exact rq worker --burst --url "$REDIS_URL" default
redis-cli -p "$PORT" shutdown nosave
wait
