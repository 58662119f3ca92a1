#!/bin/bash
#SBATCH --job-name=dl
#SBATCH --mem=2G
#SBATCH --time=04:00:00
set -o pipefail
mkdir -p ext && cd ext
wget -qO- https://example.org/releases/tool-1.4.tar.gz | tar xzf - --strip-components=1
curl -sL https://example.org/annot/genes.gff3.gz | gunzip -c | awk -F'\t' '$3=="gene"' | tee >(gzip > genes.gff3.gz) | wc -l
curl -s https://example.org/api/v1/items?limit=10 | python3 -c 'import sys, json; [print(r["id"], r["name"]) for r in json.load(sys.stdin)]' > items.txt
curl -sS -X POST -H 'Content-type: application/json' --data "{\"text\": \"job $SLURM_JOB_ID fetched $(wc -l < items.txt) items\"}" "$SLACK_URL"
./configure --prefix="$PWD/../local" && make -j4 && make install
