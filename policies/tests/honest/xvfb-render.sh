#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

xvfb-run -a -s "-screen 0 1280x1024x24" python render.py --scene a.blend
blender -b a.blend -E CYCLES -f 1 -- --cycles-device CUDA
