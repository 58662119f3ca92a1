#!/usr/bin/env bash
#SBATCH --job-name=ds-zero2
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-gpu=16G
#SBATCH --time=23:59:00
#SBATCH --output=logs/ds_%j.out

eval "$(conda shell.bash hook)"
conda activate deepspeed

CFG=$(mktemp --suffix=.json)
trap 'rm -f "$CFG"' EXIT

cat > "$CFG" <<'EOF'
{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true,
    "contiguous_gradients": true
  },
  "steps_per_print": 50
}
EOF

export TOKENIZERS_PARALLELISM=false
export HF_HOME=${SCRATCH:-$HOME}/hf-cache
deepspeed --num_gpus 4 --master_port $((29500 + RANDOM % 1000)) \
    finetune.py --deepspeed "$CFG" \
    --model_name_or_path EleutherAI/pythia-410m \
    --output_dir out/ds-$SLURM_JOB_ID
