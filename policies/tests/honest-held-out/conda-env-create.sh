#!/bin/bash
#SBATCH --job-name=envtest
#SBATCH --mem=8G
#SBATCH --time=01:00:00
#SBATCH --output=envtest.out

# >>> conda initialize >>>
# !! Contents within this block are managed by 'conda init' !!
__conda_setup="$('/opt/miniconda3/bin/conda' 'shell.bash' 'hook' 2> /dev/null)"
if [ $? -eq 0 ]; then
    eval "$__conda_setup"
else
    if [ -f "/opt/miniconda3/etc/profile.d/conda.sh" ]; then
        . "/opt/miniconda3/etc/profile.d/conda.sh"
    else
        export PATH="/opt/miniconda3/bin:$PATH"
    fi
fi
unset __conda_setup
# <<< conda initialize <<<

if ! conda env list | awk '{print $1}' | grep -qx geo; then
    conda env create -q -n geo -f environment.yml
fi
conda activate geo
conda list --export > env_$SLURM_JOB_ID.txt
python -m pytest -q tests
