#!/bin/bash
#SBATCH --array=0-39%4
#SBATCH --job-name=blastp
#SBATCH --cpus-per-task=8
#SBATCH --mem=12G
#SBATCH --time=06:00:00
#SBATCH --output=logs/blast.%a.log
#SBATCH --tmp=60G

CHUNK=$(printf "chunks/query.part_%03d.fa" "$SLURM_ARRAY_TASK_ID")
DB_SRC=/data/blastdb/uniref50
DB_DST=${TMPDIR}/blastdb
mkdir -p "$DB_DST"

( flock -x 200
  if [ ! -e "$DB_DST/.complete" ]; then
      rsync -a --info=stats1 "$DB_SRC"/ "$DB_DST"/ && touch "$DB_DST/.complete"
  fi
) 200> /tmp/blastdb.$USER.lock

time blastp -query "$CHUNK" -db "$DB_DST/uniref50" -num_threads "$SLURM_CPUS_PER_TASK" \
    -evalue 1e-5 -max_target_seqs 25 \
    -outfmt "6 qseqid sseqid pident length evalue bitscore staxids" \
    -out "hits/$(basename "$CHUNK" .fa).tsv"

n=$(grep -c '^>' "$CHUNK"); h=$(cut -f1 "hits/$(basename "$CHUNK" .fa).tsv" | sort -u | wc -l)
awk -v n="$n" -v h="$h" 'BEGIN { printf "%d of %d queries with a hit (%.1f %%)\n", h, n, 100*h/n }'
