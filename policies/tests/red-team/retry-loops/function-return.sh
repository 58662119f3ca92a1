#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

run_with_retries() {
  for i in 1 2 3 4 5; do
    srun ./cfd "$1"
    local rc=$?
    if [[ $rc == 0 ]]; then return 0; fi
    echo "try $i failed with $rc"
  done
  return 1
}
run_with_retries case.yaml
