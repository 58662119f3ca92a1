#!/bin/bash
#SBATCH --job-name=hooks
#SBATCH --mem=4G
#SBATCH --time=01:00:00

export PYENV_ROOT="$HOME/.pyenv"
export PATH="$PYENV_ROOT/bin:$PATH"
eval "$(pyenv init -)"
eval "$(pyenv virtualenv-init -)"
pyenv activate proofs
eval $(opam env --switch=4.14.1)
eval "$(ssh-agent -s)" > /dev/null
ssh-add -q ~/.ssh/data_transfer
dune build @all && dune exec ./check.exe -- theories/*.v
rsync -az -e 'ssh -o BatchMode=yes' out/ archive.example.edu:proofs/$SLURM_JOB_ID/
ssh-agent -k > /dev/null
