#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
run_fold() {
  python train.py --fold "$1" --out "out/fold$1" || return 1
  python eval.py --fold "$1"
}
for k in 0 1 2 3 4; do run_fold $k || exit 1; done
