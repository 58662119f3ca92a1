#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

yolo detect train data=coco.yaml model=yolov8n.pt device=1,2
