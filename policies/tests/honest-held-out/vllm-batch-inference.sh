#!/bin/bash
#SBATCH --job-name=vllm-batch
#SBATCH --gpus-per-node=2
#SBATCH --nodes=1
#SBATCH --mem=32G
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x.%j.out

export HF_HOME=$PWD/.hf
export VLLM_WORKER_MULTIPROC_METHOD=spawn
export VLLM_LOGGING_LEVEL=INFO

mkdir -p completions
shopt -s nullglob
for shard in prompts/*.jsonl; do
    out=completions/$(basename "$shard")
    if [[ -s $out ]]; then
        echo "skip $shard, already done"
        continue
    fi
    python -m vllm.entrypoints.openai.run_batch \
        -i "$shard" -o "$out.part" \
        --model Qwen/Qwen2.5-7B-Instruct \
        --tensor-parallel-size 2 --max-model-len 8192
    mv "$out.part" "$out"
done
wc -l completions/*.jsonl
