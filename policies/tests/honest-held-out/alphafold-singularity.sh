#!/bin/bash
#SBATCH --job-name=af2
#SBATCH --gres=gpu:a100:1
#SBATCH --mem=24G        # JUSTIFIED: hhblits over BFD keeps 20G of prefilter in memory
#SBATCH --cpus-per-task=8
#SBATCH --time=14:00:00
#SBATCH --output=af2_%j.log

FASTA=$(readlink -f "${1:-target.fasta}")
OUT=$PWD/af2_out
DATA=/datasets/alphafold
mkdir -p "$OUT"

export SINGULARITYENV_TF_FORCE_UNIFIED_MEMORY=1
export SINGULARITYENV_XLA_PYTHON_CLIENT_MEM_FRACTION=4.0

singularity exec --nv -B "$DATA":/data:ro -B "$OUT":/out -B "$(dirname "$FASTA")":/in \
    alphafold_2.3.2.sif python /app/alphafold/run_alphafold.py \
    --fasta_paths="/in/$(basename "$FASTA")" --output_dir=/out --data_dir=/data \
    --model_preset=monomer --db_preset=reduced_dbs --max_template_date="$(date +%Y-%m-%d)" \
    --uniref90_database_path=/data/uniref90/uniref90.fasta --use_gpu_relax=true
