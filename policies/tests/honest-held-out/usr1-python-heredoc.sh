#!/bin/bash
#SBATCH --job-name=sig
#SBATCH --gpus=1
#SBATCH --mem=8000
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180

srun python -u - "$SLURM_JOB_ID" <<'END_OF_PYTHON'
import os, signal, sys, time, json

stop = False
def handler(signum, frame):
    global stop
    stop = True
    print("signal", signum, "saving at the next step", flush=True)

signal.signal(signal.SIGUSR1, handler)
job = sys.argv[1]
print("devices:", os.environ.get("CUDA_VISIBLE_DEVICES"), "rank", os.environ["SLURM_PROCID"])
state = {"step": 0}
path = f"state_{job}.json"
if os.path.exists(path):
    state = json.load(open(path))
while state["step"] < 100000 and not stop:
    state["step"] += 1
    time.sleep(0.1)
with open(path + ".tmp", "w") as f:
    json.dump(state, f)
os.replace(path + ".tmp", path)
END_OF_PYTHON
