#!/bin/bash
#SBATCH --job-name=mlab
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --output=matlab_%j.out

module load matlab/R2023b
export MATLAB_PREFDIR=$(mktemp -d)
export PARALLEL_SERVER_STORAGE=$TMPDIR/mdcs; mkdir -p $PARALLEL_SERVER_STORAGE

matlab -batch "c=parcluster('local'); c.NumWorkers=str2double(getenv('SLURM_CPUS_PER_TASK')); c.JobStorageLocation=getenv('PARALLEL_SERVER_STORAGE'); parpool(c); addpath(genpath('src')); run_experiment('cfg/exp1.json'); exit(0)"

matlab -nodisplay -nosplash -r "try, make_figures, catch e, disp(getReport(e)), exit(1), end, exit" < /dev/null
rm -rf "$MATLAB_PREFDIR"
