#!/bin/bash
#SBATCH --job-name=dask-jobqueue
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
from dask_jobqueue import SLURMCluster
cluster = SLURMCluster(queue="gpu", cores=8, memory="64GB")
cluster.scale(jobs=20)
import work
work.run(cluster)
PY
