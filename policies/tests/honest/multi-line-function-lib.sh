#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

start_timer() { T0=$(date +%s); }
stop_timer() { echo "$1: $(( $(date +%s) - T0 )) s"; }
start_timer; python a.py; stop_timer a
start_timer; python b.py; stop_timer b
