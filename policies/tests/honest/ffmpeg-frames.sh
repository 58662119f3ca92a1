#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
shopt -s nullglob
for v in videos/*.mp4; do
  d=frames/$(basename "${v%.*}")
  mkdir -p "$d"
  ffmpeg -hwaccel cuda -i "$v" -vf fps=5 "$d/%06d.jpg" < /dev/null
done
