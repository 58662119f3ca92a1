#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
err=1
iter=0
while awk "BEGIN{exit !($err > 0.001)}"; do
  ./relax state.dat > out.txt
  err=$(tail -1 out.txt | awk '{print $NF}')
  iter=$((iter + 1))
  [ $iter -gt 100 ] && break
done
