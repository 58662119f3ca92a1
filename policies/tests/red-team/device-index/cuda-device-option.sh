#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

allennlp train conf.jsonnet -s out --cuda-device 1
