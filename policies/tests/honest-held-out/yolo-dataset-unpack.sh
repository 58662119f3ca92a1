#!/bin/bash
#SBATCH --job-name=yolov8
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=8
#SBATCH --time=09:00:00
#SBATCH --output=yolo_%j.out

DATA=${SLURM_TMPDIR:-/tmp/$SLURM_JOB_ID}
mkdir -p "$DATA"
time tar -I 'zstd -d -T4' -xf ~/projects/coco.tar.zst -C "$DATA"
[ "$(find "$DATA/coco" -name '*.jpg' | wc -l)" -eq 123287 ] || { echo "unpacking is incomplete"; exit 1; }
sed -i "s|^path:.*|path: $DATA/coco|" coco.yaml

yolo detect train data=coco.yaml model=yolov8m.pt epochs=100 imgsz=640 device=cuda batch=16 project=runs name=coco_$SLURM_JOB_ID
yolo val model=runs/coco_$SLURM_JOB_ID/weights/best.pt data=coco.yaml
