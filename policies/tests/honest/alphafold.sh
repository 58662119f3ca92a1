#!/bin/bash
#SBATCH --gpus=1 --mem=16G -c 8 -t 12:00:00
DB=/data/alphafold
singularity run --nv -B $DB:/db -B $PWD alphafold.sif --fasta_paths=$1 --output_dir=out --data_dir=/db --max_template_date=2023-01-01 --use_gpu_relax=true --models_to_relax=best
