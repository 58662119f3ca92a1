#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

wget -qO- https://example.org/mnist.tar.gz | tar xz -C $TMPDIR
curl -L --retry 5 -o $TMPDIR/labels.csv https://example.org/labels.csv
python train.py --data $TMPDIR
