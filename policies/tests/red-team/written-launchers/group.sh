#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

{
  echo '#!/bin/bash'
  echo 'export HIP_VISIBLE_DEVICES=0'
  echo './md'
} > md.sh
chmod 755 md.sh
srun --ntasks=1 md.sh
