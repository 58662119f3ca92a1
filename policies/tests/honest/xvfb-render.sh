#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

xvfb-run -a -s "-screen 0 1280x1024x24" python render.py --scene a.blend
blender -b a.blend -E CYCLES -f 1 -- --cycles-device CUDA
