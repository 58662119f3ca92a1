#!/bin/bash
#SBATCH --account=def-prof
#SBATCH --gres=gpu:4
#SBATCH --nodes=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=60G
#SBATCH --time=0-15:30
#SBATCH --mail-user=someone@example.edu
#SBATCH --mail-type=END,FAIL
#SBATCH --output=%N-%j.out

module load StdEnv/2023 python/3.11 cudnn
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
pip install --no-index --upgrade pip
pip install --no-index -r requirements.txt

python -c "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))"
python -c 'import sys; print(sys.version)'

export TF_FORCE_GPU_ALLOW_GROWTH=true
export TF_GPU_THREAD_MODE=gpu_private

python mirrored.py --epochs 40 --global-batch 512 --logdir $SLURM_TMPDIR/tb
tar czf $SLURM_SUBMIT_DIR/tb_$SLURM_JOB_ID.tgz -C $SLURM_TMPDIR tb
