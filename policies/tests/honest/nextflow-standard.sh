#!/bin/bash
#SBATCH -c 8 --mem=16G -t 23:00:00
module load nextflow java/17
export NXF_OPTS='-Xms1g -Xmx4g'
nextflow run nf-core/rnaseq -profile singularity -resume --input samples.csv --outdir results --max_cpus 8 --max_memory 14.GB
