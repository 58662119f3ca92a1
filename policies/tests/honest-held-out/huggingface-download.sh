#!/bin/bash
#SBATCH --job-name=hfget
#SBATCH --mem=4G
#SBATCH --time=03:00:00
#SBATCH --output=hfget.log

export HF_HUB_ENABLE_HF_TRANSFER=1
HF_TOKEN=$(cat ~/.hf_token)
export HF_TOKEN
dest=models/Mistral-7B-v0.1
huggingface-cli download mistralai/Mistral-7B-v0.1 --local-dir "$dest" --exclude "*.bin"
( cd "$dest" && sha256sum *.safetensors | tee SHA256SUMS )
du -sh "$dest"
