#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

gnuplot <<- 'EOF'
	set terminal png
	set output 'e.png'
	plot 'e.dat' using 1:2 with lines
EOF
