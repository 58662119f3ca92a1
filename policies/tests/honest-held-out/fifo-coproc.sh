#!/bin/bash
#SBATCH --job-name=fifo
#SBATCH --mem=4G
#SBATCH --cpus-per-task=4
#SBATCH --time=03:00:00

p=$(mktemp -u); mkfifo "$p"; trap 'rm -f "$p"' EXIT
pigz -dc reads.fq.gz > "$p" &
seqkit stats "$p"
wait
coproc BC { bc -l; }
echo "scale=4; 22/7" >&"${BC[1]}"
read -r -u "${BC[0]}" ratio
echo "ratio $ratio"
exec {BC[1]}>&-
samtools view -h in.bam | tee >(samtools flagstat - > flag.txt) >(cut -f3 | sort | uniq -c > chrom.txt) | samtools view -b -q 30 -o q30.bam -
