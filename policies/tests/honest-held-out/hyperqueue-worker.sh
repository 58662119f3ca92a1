#!/bin/bash
#SBATCH --job-name=hq
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16 --mem=16G
#SBATCH --time=10:00:00

export HQ_SERVER_DIR=$PWD/.hq-$SLURM_JOB_ID
hq server start &
until hq job list &> /dev/null; do sleep 1; done
srun --overlap --cpus-per-task=16 hq worker start --manager slurm --on-server-lost finish-running &
hq submit --stdout=none --cpus=2 --array 1-200 ./one_sample.sh
hq job wait all
hq job list --all
hq worker stop all; hq server stop
wait
