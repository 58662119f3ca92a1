#!/bin/bash
#SBATCH --req
#SBATCH --mem=4G
./a
