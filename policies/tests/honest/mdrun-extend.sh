#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

gmx convert-tpr -s md.tpr -extend 10000 -o next.tpr
gmx mdrun -s next.tpr -cpi md.cpt -deffnm md -gpu_id 0 -pin on
