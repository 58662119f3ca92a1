#!/bin/bash
#SBATCH -c 8 --mem=16G -t 12:00:00
spades.py -1 r1.fq -2 r2.fq -o asm -t $SLURM_CPUS_PER_TASK -m $((SLURM_MEM_PER_NODE / 1024))
if [ ! -s asm/scaffolds.fasta ]; then
  echo "no scaffolds" >&2
  exit 1
fi
quast.py asm/scaffolds.fasta -o quast
