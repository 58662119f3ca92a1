#!/bin/bash
#SBATCH --job-name=ray1
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00

ray start --head --num-gpus=1 --num-cpus=8 --port=6380 --disable-usage-stats
until ray status > /dev/null 2>&1; do sleep 2; done
RAY_ADDRESS=auto python batch_predict.py --model resnet50 --images s3_list.txt
ray stop
