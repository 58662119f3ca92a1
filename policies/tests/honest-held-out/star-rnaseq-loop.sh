#!/bin/bash
#SBATCH -J rnaseq
#SBATCH -c 12
#SBATCH --mem=23G # JUSTIFIED: the sparse STAR index of the mouse genome needs 21G
#SBATCH -t 1-0
#SBATCH -o rnaseq.%j.log

IDX=/ref/mm39/star_sparse
GTF=/ref/mm39/gencode.vM33.gtf

while read -r name rest; do
    [[ $name == \#* || -z $name ]] && continue
    echo ">> $name ($(zcat fq/${name}_1.fq.gz | head -400000 | awk 'NR%4==2{n++; l+=length($0)} END{print int(l/n)}') nt)"
    STAR --runThreadN $SLURM_CPUS_PER_TASK --genomeDir $IDX \
         --readFilesIn fq/${name}_1.fq.gz fq/${name}_2.fq.gz --readFilesCommand zcat \
         --outSAMtype BAM SortedByCoordinate --limitBAMsortRAM 1500000000 \
         --outFileNamePrefix star/${name}.
done < samples.txt

featureCounts -T 12 -p -s 2 -a $GTF -o counts.txt star/*.bam
cut -f1,7- counts.txt | sed 1d > counts.matrix
