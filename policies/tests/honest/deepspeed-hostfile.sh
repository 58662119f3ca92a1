#!/bin/bash
#SBATCH -J ds-13b
#SBATCH -N 2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --mem=32G
#SBATCH -t 1-00:00:00
scontrol show hostnames "$SLURM_JOB_NODELIST" | while read -r h; do echo "$h slots=2"; done > hostfile.$SLURM_JOB_ID
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
deepspeed --hostfile hostfile.$SLURM_JOB_ID --master_addr $MASTER_ADDR --master_port 29500 pretrain.py --deepspeed_config ds_zero2.json
rm -f hostfile.$SLURM_JOB_ID
