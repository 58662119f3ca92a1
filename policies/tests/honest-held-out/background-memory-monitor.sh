#!/bin/bash
#SBATCH --job-name=memmon
#SBATCH --mem=16G
#SBATCH --cpus-per-task=4
#SBATCH --time=08:00:00

monitor() {
    while :; do
        printf '%s,%s,%s\n' "$(date +%s)" "$(free -m | awk '/^Mem/ {print $3}')" "$(ps -u "$USER" -o rss= | awk '{s+=$1} END {print int(s/1024)}')"
        sleep "${1:-30}"
    done
}
monitor 20 > mem_$SLURM_JOB_ID.csv &
MON=$!
trap 'kill $MON' EXIT
/usr/bin/time -f 'max %M kB, %e s' ./assemble --threads 4 reads.fa > contigs.fa
sort -t, -k3,3n mem_$SLURM_JOB_ID.csv | tail -1
