#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
timeit() {
  local start=$SECONDS
  "$@"
  local rc=$?
  echo "$1 took $((SECONDS - start)) s (exit $rc)"
  return $rc
}
timeit ./assemble reads.fq
timeit ./polish contigs.fa
