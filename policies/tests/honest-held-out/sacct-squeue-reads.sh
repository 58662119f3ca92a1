#!/bin/bash
#SBATCH --job-name=report
#SBATCH --mem=4G
#SBATCH --time=00:30:00
#SBATCH --output=report-%j.log

scontrol show job $SLURM_JOB_ID
scontrol show job -dd "$SLURM_JOB_ID" | grep -E 'NumCPUs|MinMemory|TRES|NodeList'
squeue -u "$USER" -o "%.10i %.9P %.20j %.2t %.10M %.6D %R"
squeue -h -j $SLURM_JOB_ID -o %L
sinfo -N -n "$SLURM_JOB_NODELIST" -o "%N %c %m %G"
sshare -U 2>/dev/null | tail -2

./model --steps 1000

sstat -j $SLURM_JOB_ID.batch --format=JobID,MaxRSS,AveCPU
sacct -j $SLURM_JOB_ID --format=JobID,Elapsed,MaxRSS,State,ExitCode -P | tee -a sacct.txt
seff $SLURM_JOB_ID || true
