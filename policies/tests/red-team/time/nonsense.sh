#!/bin/bash
#SBATCH --mem=4G
#SBATCH --time=24h
./a
