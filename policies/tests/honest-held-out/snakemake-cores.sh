#!/bin/bash
#SBATCH --job-name=smk
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=16G
#SBATCH --time=12:00:00

# >>> mamba initialize >>>
export MAMBA_EXE="$HOME/.local/bin/micromamba";
export MAMBA_ROOT_PREFIX="$HOME/micromamba";
__mamba_setup="$("$MAMBA_EXE" shell hook --shell bash --root-prefix "$MAMBA_ROOT_PREFIX" 2> /dev/null)"
if [ $? -eq 0 ]; then
    eval "$__mamba_setup"
else
    alias micromamba="$MAMBA_EXE"  # Fallback on help from mamba activate
fi
unset __mamba_setup
# <<< mamba initialize <<<

micromamba activate snakemake
snakemake --unlock --cores 1 || true
snakemake --cores "$SLURM_CPUS_PER_TASK" --resources mem_mb=15000 \
    --use-conda --conda-frontend mamba --rerun-incomplete --keep-going --printshellcmds \
    --latency-wait 60 --stats smk_stats.json
snakemake --report report.html
