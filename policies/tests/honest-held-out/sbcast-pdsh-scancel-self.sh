#!/bin/bash
#SBATCH --job-name=serve
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --mem=8G
#SBATCH --time=12:00:00

sbcast -f --compress ./bin/worker /tmp/worker.$SLURM_JOB_ID
srun --bcast=/tmp/probe.$SLURM_JOB_ID ./bin/probe
for n in $(scontrol show hostnames "$SLURM_NODELIST"); do
    ssh -o StrictHostKeyChecking=no "$n" "uptime; df -h /tmp | tail -1"
done
srun /tmp/worker.$SLURM_JOB_ID --queue queue.db > worker.log 2>&1 &
python coordinator.py --queue queue.db && echo "all done, the workers may go"
srun rm -f /tmp/worker.$SLURM_JOB_ID
scancel "$SLURM_JOB_ID"
