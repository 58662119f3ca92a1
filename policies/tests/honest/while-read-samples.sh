#!/bin/bash
#SBATCH -c 8 --mem=16G -t 22:00:00
module load bwa samtools
tail -n +2 samples.csv | while IFS=, read -r id r1 r2; do
  [ -f bam/$id.bam ] && continue
  bwa mem -t 8 ref.fa "$r1" "$r2" | samtools sort -@ 4 -o bam/$id.bam -
  samtools index bam/$id.bam
done
