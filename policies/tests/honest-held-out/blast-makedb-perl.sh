#!/bin/bash
#SBATCH -p short
#SBATCH -J makedb
#SBATCH --mem=8G
#SBATCH -t 4:00:00

set -e
BASE=https://ftp.ncbi.nlm.nih.gov/refseq/release/viral
cd $SLURM_SUBMIT_DIR
mkdir -p db && cd db

for i in 1 2 3; do
  wget -q -N -c $BASE/viral.$i.protein.faa.gz
done
curl -sSfL -o md5checksums.txt https://ftp.ncbi.nlm.nih.gov/refseq/release/release-catalog/release.md5
grep 'viral.*faa' md5checksums.txt | md5sum --check --ignore-missing -

zcat viral.*.protein.faa.gz | perl -pe 's/^>(\S+).*\[(.*)\]/>$1 $2/' > viral.faa
perl -ne 'if (/^>/) { $n++ } else { chomp; $l += length } END { printf "%d sequences, %.1f aa on average\n", $n, $l/$n }' viral.faa
makeblastdb -in viral.faa -dbtype prot -parse_seqids -title "RefSeq viral $(date +%F)" -out viral
