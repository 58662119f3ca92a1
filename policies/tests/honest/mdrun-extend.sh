#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

gmx convert-tpr -s md.tpr -extend 10000 -o next.tpr
gmx mdrun -s next.tpr -cpi md.cpt -deffnm md -gpu_id 0 -pin on
