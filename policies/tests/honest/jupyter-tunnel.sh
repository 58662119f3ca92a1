#!/bin/bash
#SBATCH -J jupyter --gpus=1 --mem=16G -t 8:00:00
node=$(hostname -s)
port=$(shuf -i 8000-9999 -n 1)
user=$(whoami)
cat <<END
Run this on your own computer:
  ssh -N -L ${port}:${node}:${port} ${user}@login.cluster
Then open http://localhost:${port}
When you are done: scancel ${SLURM_JOB_ID}
END
jupyter lab --no-browser --ip=${node} --port=${port}
