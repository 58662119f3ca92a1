#!/bin/bash
#SBATCH --job-name=kraken2
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=03:00:00
#SBATCH --output=kraken.%j.log

declare -A DB
DB[standard8]=/db/k2_standard_08gb
DB[viral]=/db/k2_viral
DB["plus pf"]=/db/k2_pluspf_08gb

for key in "${!DB[@]}"; do
  tag=${key// /_}
  kraken2 --db "${DB[$key]}" --threads $SLURM_CPUS_PER_TASK --paired \
      --report $tag.kreport --output - reads_1.fq.gz reads_2.fq.gz
  bracken -d "${DB[$key]}" -i $tag.kreport -o $tag.bracken -r 150 -l S
done

comm -12 <(cut -f1 standard8.bracken | sort) <(cut -f1 plus_pf.bracken | sort) > common.txt
paste <(sort viral.bracken) <(sort viral.kreport) | column -t -s $'\t' | head
diff <(ls /db/k2_viral) <(ls /db/k2_standard_08gb) || true
