#!/bin/bash
#SBATCH --job-name=trim
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --output=trim.%j

trim_one() {
    local r1=$1
    local r2=${r1/_R1/_R2}
    local s; s=$(basename "${r1%%_R1*}")
    fastp -i "$r1" -I "$r2" -o "trim/$(basename "$r1")" -O "trim/$(basename "$r2")" -w 2 -j "qc/$s.json" -h "qc/$s.html" 2> "qc/$s.log"
    echo "$s done"
}
export -f trim_one

mkdir -p trim qc
parallel --halt soon,fail=1 -j $((SLURM_CPUS_PER_TASK / 2)) trim_one ::: fq/*_R1*.fastq.gz
printf '%s\0' late/*_R1*.fastq.gz | xargs -0 -r -n1 -P4 bash -c 'trim_one "$0"'
jq -r '[.summary.before_filtering.total_reads, .summary.after_filtering.total_reads] | @tsv' qc/*.json > reads.tsv
