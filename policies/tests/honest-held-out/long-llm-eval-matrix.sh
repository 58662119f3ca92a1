#!/bin/bash
#SBATCH --job-name=eval-matrix
#SBATCH --account=nlp
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus=2
#SBATCH --cpus-per-gpu=6
#SBATCH --mem-per-gpu=16G
#SBATCH --time=20:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --output=logs/eval/%x-%j.out
#SBATCH --open-mode=append

# Evaluate every model on every task.  CUDA_VISIBLE_DEVICES is set by slurm,
# lm_eval shards over all the GPUs it sees.

set -uo pipefail
umask 0027

MODELS=(
    "EleutherAI/pythia-1.4b"
    "EleutherAI/pythia-2.8b"
    "facebook/opt-1.3b"
    "bigscience/bloom-1b7"     # multilingual
)
TASKS="arc_easy,arc_challenge,hellaswag,piqa,winogrande"
declare -A SHOTS=([arc_easy]=0 [arc_challenge]=25 [hellaswag]=10 [piqa]=0 [winogrande]=5)

RESULTS=$SLURM_SUBMIT_DIR/eval/$(date +%Y-%m-%d)
LOCAL=${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/eval.$SLURM_JOB_ID
mkdir -p "$RESULTS" "$LOCAL"

hr() { printf '%.0s-' {1..72}; echo; }

on_usr1() {
    echo "$(date +%T) five minutes are left, saving what there is"
    rsync -a "$LOCAL"/ "$RESULTS"/
    touch "$RESULTS/INCOMPLETE"
}
trap on_usr1 USR1
trap 'rsync -a "$LOCAL"/ "$RESULTS"/; rm -rf "$LOCAL"; [[ -n ${SMI:-} ]] && kill "$SMI"' EXIT

hr
echo "job       $SLURM_JOB_ID on $SLURM_JOB_NODELIST"
echo "gpus      ${CUDA_VISIBLE_DEVICES:-none}"
echo "commit    $(git rev-parse HEAD 2>/dev/null || echo unknown)"
echo "time left $(squeue -h -j "$SLURM_JOB_ID" -O TimeLeft)"
hr

source "$HOME/miniforge3/etc/profile.d/conda.sh"
conda activate lmeval
export HF_HUB_OFFLINE=1 HF_DATASETS_CACHE=$LOCAL/datasets TOKENIZERS_PARALLELISM=true

nvidia-smi --query-gpu=timestamp,uuid,memory.used,power.draw --format=csv,nounits -l 60 > "$LOCAL/gpu.csv" &
SMI=$!

IFS=, read -ra task_list <<< "$TASKS"
for model in "${MODELS[@]}"; do
    short=${model#*/}
    for task in "${task_list[@]}"; do
        target=$LOCAL/$short.$task.json
        [[ -s $RESULTS/$short.$task.json ]] && { echo "have $short $task"; continue; }
        t0=$(date +%s)
        accelerate launch --multi_gpu --num_processes 2 --main_process_port $((29000 + SLURM_JOB_ID % 999)) \
            -m lm_eval --model hf --model_args "pretrained=$model,dtype=bfloat16" \
            --tasks "$task" --num_fewshot "${SHOTS[$task]:-0}" --batch_size auto \
            --output_path "$target" > "$LOCAL/$short.$task.log" 2>&1 &
        wait $!
        rc=$?
        printf '%-16s %-16s %4d s  rc %d\n' "$short" "$task" "$(( $(date +%s) - t0 ))" "$rc"
        if (( rc != 0 )); then
            tail -n 15 "$LOCAL/$short.$task.log"
        fi
    done
done

python - "$LOCAL" "$RESULTS" <<'PY'
import json
import pathlib
import sys

rows = {}
for folder in map(pathlib.Path, sys.argv[1:]):
    for p in sorted(folder.glob("*.json")):
        model, task = p.stem.rsplit(".", 1)
        res = json.loads(p.read_text()).get("results", {}).get(task, {})
        rows.setdefault(model, {})[task] = res.get("acc_norm,none", res.get("acc,none"))
tasks = sorted({t for r in rows.values() for t in r})
print("model".ljust(20), *(t.rjust(14) for t in tasks))
for m, r in rows.items():
    print(m.ljust(20), *(f"{r[t]:14.3f}" if r.get(t) is not None else " " * 14 for t in tasks))
PY
