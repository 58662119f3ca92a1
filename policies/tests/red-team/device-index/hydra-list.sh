#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python train.py trainer.devices=[2,3] trainer.accelerator=gpu
