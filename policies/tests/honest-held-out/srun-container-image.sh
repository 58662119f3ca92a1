#!/bin/bash
#SBATCH --job-name=nemo
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --mem=32G
#SBATCH --time=10:00:00
#SBATCH --output=nemo_%j.out

: "${DATA:=$HOME/data/librispeech}"
srun --container-image=nvcr.io#nvidia/nemo:24.01 \
     --container-mounts="$DATA:/data,$PWD:/work" --container-workdir=/work --no-container-mount-home \
     python speech_to_text_ctc_bpe.py model.train_ds.manifest_filepath=/data/train.json \
       trainer.devices=2 trainer.num_nodes=1 trainer.max_epochs=50 ++exp_manager.exp_dir=/work/exp
