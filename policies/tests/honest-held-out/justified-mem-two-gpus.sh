#!/bin/bash
#SBATCH --job-name=esm
#SBATCH --nodes=1
#SBATCH --gpus=2
#SBATCH --mem=44G   # JUSTIFIED: each rank keeps an 18G embedding table in host memory
#SBATCH --time=09:00:00
#SBATCH --output=esm.%j.log
set -e
mamba activate esm
accelerate launch --num_processes 2 --mixed_precision bf16 embed.py --fasta uniprot_sprot.fasta --layer 33 --out emb/
