#!/bin/bash
#SBATCH --job-name=al
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=6
#SBATCH --time=1-00:00:00
#SBATCH --output=logs/al-%j.log

set -e
cp pool/seed.txt labelled_0.txt
r=0
until (( r == 10 )); do
    python train.py --labelled labelled_$r.txt --out models/r$r
    python score.py --model models/r$r --pool pool/all.txt --out scores_$r.tsv
    cat labelled_$r.txt <(sort -k2,2gr scores_$r.tsv | cut -f1 | head -n 500) | sort -u > labelled_$((r + 1)).txt
    acc=$(python -c "import json; print(json.load(open('models/r$r/metrics.json'))['acc'])")
    echo "round $r: $(wc -l < labelled_$r.txt) labels, accuracy $acc"
    r=$((r + 1))
done
