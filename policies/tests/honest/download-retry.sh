#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
URL=https://example.org/data/genome.fa.gz
for try in 1 2 3; do
  wget -c -q "$URL" -O genome.fa.gz && break
  echo "download failed ($try)" >&2
  sleep 20
done
gunzip -k genome.fa.gz
samtools faidx genome.fa
