#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

for nb in notebooks/0*.ipynb; do
  jupyter nbconvert --to notebook --execute --ExecutePreprocessor.timeout=-1 --output-dir executed "$nb"
done
