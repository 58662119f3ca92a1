#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
ollama serve > ollama.log 2>&1 &
sleep 5
while ! curl -s http://127.0.0.1:11434 > /dev/null; do sleep 1; done
ollama pull llama3
python ask.py
