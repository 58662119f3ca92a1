#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

for shard in $(seq 0 $((NSHARDS - 1))); do
  python embed.py --fasta prot.fa --shard $shard --nshards $NSHARDS --device cuda --out emb/$shard.pt
done
