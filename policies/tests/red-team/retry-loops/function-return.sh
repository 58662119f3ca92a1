#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
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
