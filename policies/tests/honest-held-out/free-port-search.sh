#!/bin/bash
#SBATCH --job-name=mlflow
#SBATCH --gpus=1
#SBATCH --mem=10G
#SBATCH --time=05:00:00

port=5000
while ss -ltn | grep -q ":$port "; do
    port=$((port + 1))
done
mlflow server --host 127.0.0.1 --port "$port" --backend-store-uri sqlite:///mlflow.db > mlflow.log 2>&1 &
mlflow_pid=$!
for i in $(seq 60); do
    (echo > /dev/tcp/127.0.0.1/$port) 2>/dev/null && break
    sleep 1
done
MLFLOW_TRACKING_URI=http://127.0.0.1:$port python train_tabular.py
kill "$mlflow_pid"
