#!/bin/bash
#SBATCH --job-name=4seeds
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-gpu=16G
#SBATCH --time=10:00:00
#SBATCH --output=logs/seeds-%j.out

pids=()
for seed in 1 2 3 4; do
    srun --ntasks=1 --exclusive --gpus-per-task=1 --cpus-per-task=4 --mem=15G \
         --output=logs/seed${seed}-%j.out python train.py --seed $seed &
    pids+=($!)
done

fail=0
for pid in "${pids[@]}"; do
    wait "$pid" || fail=$((fail + 1))
done
echo "$fail of ${#pids[@]} seeds failed"
exit $fail
