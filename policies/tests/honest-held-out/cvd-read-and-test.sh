#!/bin/bash
#SBATCH --job-name=cvdcheck
#SBATCH --gpus=2
#SBATCH --nodes=1
#SBATCH --mem=20G
#SBATCH --time=00:20:00

if [ -z "$CUDA_VISIBLE_DEVICES" ]; then
    echo "no GPU was given to this job" >&2
    exit 1
fi
[[ -n ${CUDA_VISIBLE_DEVICES+x} ]] && echo "set"
IFS=',' read -ra GPUS <<< "$CUDA_VISIBLE_DEVICES"
NGPU=${#GPUS[@]}
COUNT=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | wc -l)
test "$NGPU" -eq "$COUNT" || echo "odd: $NGPU and $COUNT"
printenv CUDA_VISIBLE_DEVICES
env | grep -E 'CUDA|SLURM' | sort
python -c "import os; print('python sees', os.environ['CUDA_VISIBLE_DEVICES'])"
python -c "import torch; assert torch.cuda.device_count() == $NGPU, torch.cuda.device_count(); print(torch.cuda.get_device_name(0))"
torchrun --nproc_per_node=$NGPU bench.py
