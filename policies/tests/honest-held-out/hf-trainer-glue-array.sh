#!/bin/bash
#SBATCH --job-name=glue
#SBATCH --array=0-7%2
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH --cpus-per-task=4
#SBATCH --time=03:00:00
#SBATCH --output=logs/glue_%A_%a.out

TASKS=(cola sst2 mrpc stsb qqp mnli qnli rte)
TASK=${TASKS[$SLURM_ARRAY_TASK_ID]}

declare -A LR=( [cola]=2e-5 [sst2]=2e-5 [mrpc]=3e-5 [stsb]=3e-5 [qqp]=2e-5 [mnli]=2e-5 [qnli]=2e-5 [rte]=3e-5 )
declare -A EPOCHS=( [cola]=5 [sst2]=3 [mrpc]=5 [stsb]=5 [qqp]=3 [mnli]=3 [qnli]=3 [rte]=8 )

export WANDB_PROJECT=glue-baselines WANDB_MODE=offline
export HF_DATASETS_OFFLINE=1 TRANSFORMERS_OFFLINE=1

printf '[%(%F %T)T] task %s lr %s epochs %s on %s\n' -1 "$TASK" "${LR[$TASK]}" "${EPOCHS[$TASK]}" "$(hostname -s)"

uv run --frozen python run_glue.py \
    --model_name_or_path roberta-base \
    --task_name "$TASK" \
    --do_train --do_eval \
    --max_seq_length 128 \
    --per_device_train_batch_size 32 \
    --learning_rate "${LR[$TASK]}" \
    --num_train_epochs "${EPOCHS[$TASK]}" \
    --output_dir "out/$TASK/${SLURM_ARRAY_JOB_ID}" \
    --overwrite_output_dir
