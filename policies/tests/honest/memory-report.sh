#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

/usr/bin/time -v ./assemble reads.fq 2> time.log
sstat -j $SLURM_JOB_ID.batch --format=MaxRSS,AveCPU
sacct -j $SLURM_JOB_ID --format=JobID,Elapsed,MaxRSS,State
scontrol show job $SLURM_JOB_ID -dd > jobinfo.txt
seff $SLURM_JOB_ID || true
