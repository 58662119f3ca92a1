#!/bin/bash
#SBATCH --mem=8G -c 8
cargo build --release
./target/release/sim --threads $SLURM_CPUS_PER_TASK
go run ./cmd/tool -in a -out b
