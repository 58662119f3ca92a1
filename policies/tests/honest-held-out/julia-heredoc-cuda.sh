#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
#SBATCH --job-name=cujl
module load julia/1.10 cuda
julia --project <<'EOT'
using CUDA, LinearAlgebra, Printf
CUDA.versioninfo()
n = 4096
A = CUDA.rand(n, n); B = similar(A)
t = CUDA.@elapsed mul!(B, A, A)
@printf("%d x %d: %.2f TFLOP/s\n", n, n, 2n^3 / t / 1e12)
EOT
