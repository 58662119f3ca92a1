#!/bin/bash
#SBATCH -J serve-eval
#SBATCH --gres=gpu:1
#SBATCH --mem=16G
#SBATCH -c 8
#SBATCH -t 2:00:00
#SBATCH -o logs/serve-eval.%j

PORT=$((8000 + SLURM_JOB_ID % 1000))
python -m vllm.entrypoints.openai.api_server --model "$MODEL_DIR/llama-3.2-3b" --port $PORT > logs/server.$SLURM_JOB_ID 2>&1 &
SERVER=$!
trap 'kill $SERVER 2>/dev/null' EXIT

waited=0
until curl -sf "http://localhost:$PORT/health" > /dev/null; do
    if ! kill -0 $SERVER 2>/dev/null; then
        echo "server died" >&2
        tail -n 50 logs/server.$SLURM_JOB_ID >&2
        exit 1
    fi
    sleep 5
    (( waited += 5 ))
    if (( waited > 900 )); then echo "no server after $waited s" >&2; exit 1; fi
done
echo "server up after ${waited}s"

lm_eval --model local-completions --tasks gsm8k,hellaswag \
  --model_args base_url=http://localhost:$PORT/v1/completions,model=llama-3.2-3b,num_concurrent=16
