#!/bin/bash
#SBATCH --job-name=llama13b
#SBATCH --gpus=1
#SBATCH --mem=40G
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --output=logs/llama13b-%j.out

module load cuda/12.1
source ~/venvs/llm/bin/activate
python generate.py --model meta-llama/Llama-2-13b-hf --load-in-8bit --prompts prompts.txt --out answers.jsonl
