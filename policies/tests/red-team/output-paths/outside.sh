#!/bin/bash
#SBATCH -o /home/other/.bashrc
#SBATCH --mem=4G
./a
