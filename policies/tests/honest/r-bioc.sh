#!/bin/bash
#SBATCH --mem=15G -t 10:00:00 -c 4
module load R/4.3.1
export R_LIBS_USER=$HOME/R/4.3
Rscript -e 'if (!requireNamespace("DESeq2", quietly = TRUE)) stop("DESeq2 is missing")'
Rscript --vanilla deseq.R counts.tsv meta.tsv results/
