#!/bin/bash
#SBATCH --job-name=airflow-ssh
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > dags/big.py <<'PY'
from airflow import DAG
from airflow.operators.bash import BashOperator
with DAG("big") as dag:
    BashOperator(task_id="go", bash_command="sbatch big.sh")
PY
airflow dags test big
