#!/bin/bash
#SBATCH --job-name=mc
#SBATCH --array=1-500%4
#SBATCH --mem-per-cpu=2G
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
#SBATCH --output=logs/mc-%A_%a.out

PARAMS=params.txt
read -r BETA L SEED < <(awk -v t="$SLURM_ARRAY_TASK_ID" 'NR==t' "$PARAMS")
if [[ -z ${BETA:-} || -z ${L:-} ]]; then
    echo "no parameters on line $SLURM_ARRAY_TASK_ID of $PARAMS" >&2
    exit 64
fi

OUT=data/b${BETA}_L${L}/s${SEED}.dat
mkdir -p "$(dirname "$OUT")"
echo "# beta=$BETA L=$L seed=$SEED job=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID} git=$(git rev-parse --short HEAD)" > "$OUT"
./ising --beta "$BETA" --size "$L" --seed "$SEED" --sweeps 1000000 >> "$OUT"
