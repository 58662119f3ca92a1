#!/bin/bash
#SBATCH --job-name=perf
#SBATCH --mem=8G
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00

ulimit -c unlimited -s unlimited
lscpu | grep -E 'Model name|NUMA'
env OMP_NUM_THREADS=4 OMP_DISPLAY_ENV=true numactl --cpunodebind=0 --membind=0 ./stencil 2000
perf stat -e cycles,instructions,cache-misses -o perf.txt -- nice -n 5 ./stencil 500
stdbuf -oL gdb -batch -ex run -ex bt -ex quit --args ./stencil 100 2>&1 | tail -30
timeout --signal=INT 20m valgrind --leak-check=full --log-file=vg.%p.log ./stencil 20
nohup ./stencil 4000 > long.log 2>&1 &
wait
env -u OMP_NUM_THREADS ./stencil 10
