#!/bin/bash
#SBATCH --mem=4G
#SBATCH --time=5-00:00:00
./a
