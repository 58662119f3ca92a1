#!/bin/bash
#SBATCH --job-name=align
#SBATCH --array=1-48%4
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=08:00:00
#SBATCH --output=logs/align_%A_%a.out
#SBATCH --error=logs/align_%A_%a.err

set -euo pipefail
module load bwa/0.7.17 samtools/1.17

LINE=$(sed -n "${SLURM_ARRAY_TASK_ID}p" samples.tsv)
IFS=$'\t' read -r SAMPLE R1 R2 <<< "$LINE"
REF=ref/GRCh38.fa
RG="@RG\tID:${SAMPLE}\tSM:${SAMPLE}\tPL:ILLUMINA\tLB:lib1"

echo "[$(date)] $SAMPLE"
bwa mem -t "$SLURM_CPUS_PER_TASK" -R "$RG" "$REF" "$R1" "$R2" \
  | samtools sort -@ 2 -m 1G -T "${TMPDIR:-/tmp}/$SAMPLE" -o "bam/$SAMPLE.bam" -
samtools index "bam/$SAMPLE.bam"
samtools flagstat "bam/$SAMPLE.bam" | tee "qc/$SAMPLE.flagstat"
md5sum "bam/$SAMPLE.bam" > "bam/$SAMPLE.bam.md5"
