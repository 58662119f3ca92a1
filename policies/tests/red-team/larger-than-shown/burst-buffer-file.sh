#!/bin/bash
#SBATCH --bbf=bb.conf
#SBATCH --mem=4G
./a
