#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python train.py --multirun optimizer=adam,sgd lr=0.1,0.01 hydra.launcher.n_jobs=1 hydra/launcher=joblib
