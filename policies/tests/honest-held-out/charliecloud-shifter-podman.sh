#!/bin/bash
#SBATCH --job-name=anyrt
#SBATCH --mem=8G
#SBATCH --time=02:00:00

if command -v ch-run > /dev/null; then
    rt=(ch-run -b "$PWD:/mnt" ./img.sqfs --)
elif command -v podman-hpc > /dev/null; then
    rt=(podman-hpc run --rm -v "$PWD:/mnt" docker.io/biocontainers/blast:2.13)
else
    rt=(shifter --image=docker:biocontainers/blast:2.13)
fi
"${rt[@]}" blastn -version
"${rt[@]}" blastn -query /mnt/q.fa -subject /mnt/s.fa -outfmt 6 -out /mnt/hits.tsv
