#!/bin/bash
#SBATCH --job-name=phylo
#SBATCH --cpus-per-task=16
#SBATCH --mem=16G
#SBATCH --time=1-0:0:0
#SBATCH --output=phylo_%j.log

ALN=concat.phy
MODEL=$(awk '/Best-fit model/ {print $NF; exit}' modeltest/concat.out)
: "${MODEL:=GTR+G}"
raxml-ng --check --msa $ALN --model $MODEL --prefix chk
raxml-ng --all --msa $ALN --model $MODEL --tree pars{10},rand{10} --bs-trees 200 --threads 16 --seed $RANDOM --prefix rx
[[ -f iq.ckp.gz ]] && redo="" || redo="--redo"
iqtree2 -s $ALN -m MFP -B 1000 -T $SLURM_CPUS_PER_TASK $redo --prefix iq
nw_topology -I rx.raxml.support | nw_display - | head -40
