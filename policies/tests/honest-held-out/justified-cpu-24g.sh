#!/bin/bash
#SBATCH --job-name=spades
#SBATCH --cpus-per-task=16
#SBATCH --mem=24G # JUSTIFIED: de Bruijn graph of 12 Gbp of reads peaks at 22G
#SBATCH --time=22:00:00
#SBATCH --output=spades-%j.log
module load spades/3.15.5
spades.py --only-assembler -t $SLURM_CPUS_PER_TASK -m 23 -1 clean_1.fq.gz -2 clean_2.fq.gz -k 21,33,55,77 --tmp-dir $TMPDIR -o asm \
  || { tail -40 asm/spades.log; exit 1; }
quast.py asm/contigs.fasta -o quast -t 4
