#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=16384
#SBATCH --time=300
#SBATCH --job-name=cellpose
#SBATCH --output=cellpose_%j.out

nvidia-smi
nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used --format=csv -l 30 > gpu_usage_$SLURM_JOB_ID.csv &
SMI_PID=$!

module load singularity
SINGULARITYENV_OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE \
singularity run --nv -B /scratch/$USER:/scratch cellpose.simg \
   --dir /scratch/images --pretrained_model cyto2 --use_gpu --save_tif --verbose

kill $SMI_PID
awk -F', ' 'NR>1 {gsub(" %","",$4); s+=$4; n++} END {if (n) printf "mean GPU utilisation %.1f %%\n", s/n}' gpu_usage_$SLURM_JOB_ID.csv
