#!/bin/bash
#SBATCH -J x --requeue --open-mode=append
#SBATCH --mem=4G
./a
