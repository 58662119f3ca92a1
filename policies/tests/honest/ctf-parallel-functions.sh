#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
process_one() {
  local f=$1
  ctffind "$f" > "${f%.mrc}.ctf"
}
export -f process_one
find mics -name '*.mrc' | parallel -j 4 process_one {}
