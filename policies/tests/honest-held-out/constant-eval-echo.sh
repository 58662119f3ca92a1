#!/bin/bash
#SBATCH --job-name=echoeval
#SBATCH --mem=4G
#SBATCH --time=01:00:00
CMD="plink2 --bfile data/chr22 --maf 0.01 --hwe 1e-6 --make-bed --out out/chr22_qc --threads 2 --memory 3500"
echo "$CMD"
eval "$CMD"
eval 'awk "{print \$2}" out/chr22_qc.bim | wc -l'
n=$(wc -l < out/chr22_qc.fam)
echo "$n people pass"
gzip -f out/chr22_qc.log
