#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
diff <(sort a.txt) <(sort b.txt) > diff.txt || true
paste <(cut -f1 a.tsv) <(cut -f2 b.tsv) > ab.tsv
./run ab.tsv
