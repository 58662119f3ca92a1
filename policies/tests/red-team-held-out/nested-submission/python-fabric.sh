#!/bin/bash
#SBATCH --job-name=python-fabric
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import paramiko
c = paramiko.SSHClient()
c.load_system_host_keys()
c.connect("login1")
c.exec_command("sbatch big.sh")[1].read()
PY
