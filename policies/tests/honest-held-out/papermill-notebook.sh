#!/bin/bash
#SBATCH --job-name=nb
#SBATCH --mem=12G
#SBATCH --cpus-per-task=2
#SBATCH --time=02:00:00

source ~/miniconda3/etc/profile.d/conda.sh && conda activate report
for region in north south east west; do
    papermill analysis.ipynb out/analysis_$region.ipynb -p region $region -p n_jobs 2 --log-output
done
jupyter nbconvert --to html out/analysis_*.ipynb
tar cjf report_$(date +%Y%m%d).tar.bz2 out/*.html
