#!/bin/bash
#SBATCH --job-name=longopts
#SBATCH --mem=8G
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00

PARSED=$(getopt -o i:o:vh --long input:,output:,threads:,verbose,help -n "$(basename "$0")" -- "$@") || exit 2
eval set -- "$PARSED"

THREADS=${SLURM_CPUS_PER_TASK:-1} VERBOSE=0 IN=in.csv OUT=out.csv
while true; do
  case "$1" in
    -i|--input)   IN=$2; shift 2 ;;
    -o|--output)  OUT=$2; shift 2 ;;
    --threads)    THREADS=$2; shift 2 ;;
    -v|--verbose) VERBOSE=1; shift ;;
    -h|--help)    sed -n '2,8p' "$0"; exit 0 ;;
    --) shift; break ;;
    *) echo "bad option $1" >&2; exit 2 ;;
  esac
done
[ "$VERBOSE" = 1 ] && set -x
mlr --icsv --ocsv --nr-progress-mod 1000000 stats1 -a mean,p50,count -f value -g station "$IN" > "$OUT"
echo "threads were $THREADS"
