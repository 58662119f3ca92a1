#!/bin/bash
#SBATCH --mem=4G
#SBATCH --time=9000:00
./a
