#!/bin/bash
#SBATCH --job-name=jupyter
#SBATCH --gres=gpu:1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=4
#SBATCH --time=08:00:00
#SBATCH --output=jupyter-%j.log

port=$(shuf -i 8000-9999 -n 1)
node=$(hostname -s)
user=$(whoami)

cat <<END
Command to create the ssh tunnel:
ssh -N -f -L ${port}:${node}:${port} ${user}@login.cluster.example.edu

Then open http://localhost:${port}
Stop with: scancel $SLURM_JOB_ID
END

unset XDG_RUNTIME_DIR
module load anaconda3
source activate ds
jupyter lab --no-browser --port=${port} --ip=${node}
