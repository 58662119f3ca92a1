#!/usr/bin/env bash
#SBATCH --job-name=pipeline
#SBATCH --partition=normal
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=12
#SBATCH --mem=16G
#SBATCH --time=1-00:00:00
#SBATCH --output=logs/%x_%j.out
#SBATCH --error=logs/%x_%j.err
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=bioinf@example.edu

# ---------------------------------------------------------------
#  usage: sbatch pipeline.sh -c config.sh [-s first_stage] [-n]
# ---------------------------------------------------------------

set -Eeuo pipefail
shopt -s nullglob extglob
IFS=$'\n\t'

readonly VERSION=2.3.1
readonly START=$SECONDS
declare -i NFAIL=0
declare -a DONE=()
declare -A TOOLS=(
    [fastqc]="fastqc --version"
    [salmon]="salmon --version"
    [multiqc]="multiqc --version"
)

CONFIG=""
FIRST=1
DRY=false

while getopts 'c:s:nh' o; do
    case $o in
        c) CONFIG=$OPTARG ;;
        s) FIRST=$OPTARG ;;
        n) DRY=true ;;
        h|*) grep '^#  usage' "$0"; exit 1 ;;
    esac
done
shift "$((OPTIND - 1))"

THREADS="${SLURM_CPUS_PER_TASK:-4}"
OUT="${OUT:-results}"
INDEX="${INDEX:-ref/salmon_index}"

log()  { printf '[%(%Y-%m-%d %H:%M:%S)T] %-5s %s\n' -1 "$1" "${*:2}" | tee -a "$OUT/pipeline.log" >&2; }
die()  { log ERROR "$@"; exit 1; }
stamp_of() { printf '%s/.stamps/%s' "$OUT" "$1"; }

stage() {
    local -r number=$1 name=$2
    local st; st=$(stamp_of "$name")
    shift 2
    if (( number < FIRST )) || [[ -e $st ]]; then
        log INFO "stage $number ($name) is done, skipped"
        return 0
    fi
    log INFO "stage $number ($name)"
    if $DRY; then
        printf '   would run: %q' "$@"; echo
        return 0
    fi
    if "$@"; then
        touch "$st"
        DONE+=("$name")
    else
        NFAIL+=1
        log WARN "$name failed"
    fi
}

quality() {
    fastqc --quiet --threads "$THREADS" --outdir "$OUT/fastqc" fq/*_R[12].fastq.gz
}

quantify() {
    local r1 r2 s
    for r1 in fq/*_R1.fastq.gz; do
        r2=${r1/_R1./_R2.}
        s=${r1##*/}; s=${s%%_R1.*}
        [[ -f $r2 ]] || { log WARN "$s has no second read"; continue; }
        salmon quant -i "$INDEX" -l A -1 "$r1" -2 "$r2" -p "$THREADS" --validateMappings --gcBias -o "$OUT/salmon/$s" &> "$OUT/salmon_$s.log"
    done
}

summarise() {
    {
        printf 'sample\tmapped\tpercent\n'
        for j in "$OUT"/salmon/*/aux_info/meta_info.json; do
            jq -r --arg s "$(basename "$(dirname "$(dirname "$j")")")" '[$s, .num_mapped, .percent_mapped] | @tsv' "$j"
        done
    } > "$OUT/mapping.tsv"
    Rscript - "$OUT" <<'R'
a <- commandArgs(trailingOnly = TRUE)
d <- read.delim(file.path(a[1], "mapping.tsv"))
cat(sprintf("%d samples, median %.1f %% mapped\n", nrow(d), median(d$percent)))
R
}

mkdir -p "$OUT"/{fastqc,salmon,.stamps}
for t in "${!TOOLS[@]}"; do
    command -v "$t" > /dev/null || die "$t is missing"
done
log INFO "version $VERSION, job ${SLURM_JOB_ID:-none}, config ${CONFIG:-none}, threads $THREADS"

stage 1 quality   quality
stage 2 quantify  quantify
stage 3 summarise summarise
stage 4 multiqc   multiqc -f -q -o "$OUT/multiqc" "$OUT"

log INFO "done: ${DONE[*]:-nothing}; failed: $NFAIL; $((SECONDS - START)) s"
exit "$NFAIL"
