#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python -m vllm.entrypoints.openai.api_server --model $MODEL --port 8000 --tensor-parallel-size 1 > vllm.log 2>&1 &
VLLM=$!
trap "kill $VLLM" EXIT
for i in $(seq 1 120); do
  if curl -s localhost:8000/health > /dev/null; then break; fi
  if ! kill -0 $VLLM; then echo "server died"; exit 1; fi
  sleep 5
done
python ask.py --endpoint http://localhost:8000/v1 --in prompts.jsonl --out answers.jsonl
