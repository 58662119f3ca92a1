#!/bin/bash
#SBATCH --job-name=qc
#SBATCH --ntasks=1 --cpus-per-task=8 --mem=10G
#SBATCH --time=02:00:00
module load fastqc multiqc parallel

mkdir -p qc
find raw -name '*.fastq.gz' -print0 | xargs -0 -n 1 -P $SLURM_CPUS_PER_TASK fastqc -q -o qc
find raw -name '*_R1_*.fastq.gz' | parallel -j 4 'zcat {} | head -n 400000 | gzip > sub/{/}'
ls sub/*.gz | xargs -I{} sh -c 'echo {} $(zcat {} | wc -l)'
multiqc -f -o qc qc
