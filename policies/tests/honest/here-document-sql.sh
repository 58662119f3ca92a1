#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

sqlite3 runs.db <<SQL
CREATE TABLE IF NOT EXISTS runs (id INTEGER, loss REAL);
INSERT INTO runs VALUES ($SLURM_JOB_ID, 0.1);
SQL
