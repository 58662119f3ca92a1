#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cp base.sh mine.sh
sed -i 's/NGPU=1/NGPU=4/; s/#RUN#/sbatch/' mine.sh
bash mine.sh
