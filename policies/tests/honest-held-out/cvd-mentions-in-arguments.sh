#!/bin/bash
#SBATCH --job-name=gpuaudit
#SBATCH --gpus=1
#SBATCH --mem=4G
#SBATCH --time=00:15:00

describe() {
    local gpus=$CUDA_VISIBLE_DEVICES
    echo "this job has ${gpus//,/ and }"
}
describe
grep -rn "CUDA_VISIBLE_DEVICES=" --include='*.py' src | tee hard_coded.txt
grep -c 'os.environ\["CUDA_VISIBLE_DEVICES"\] = ' src/*.py | awk -F: '$2 > 0'
logger -t "job$SLURM_JOB_ID" "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
nvidia-smi -L
if [ "$CUDA_VISIBLE_DEVICES" = "NoDevFiles" ]; then echo "no device files"; exit 1; fi
[[ $CUDA_VISIBLE_DEVICES == *,* ]] && echo "more than one"
case $CUDA_VISIBLE_DEVICES in '') echo none ;; *) echo "ok: $CUDA_VISIBLE_DEVICES" ;; esac
python check_gpu.py --note "visible: ${CUDA_VISIBLE_DEVICES:-nothing}"
mail -s "audit: CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES on $(hostname)" "$USER" < hard_coded.txt
