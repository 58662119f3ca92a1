#!/bin/bash
#SBATCH --job-name=ci-build
#SBATCH --cpus-per-task=12
#SBATCH --mem=12G
#SBATCH --time=01:30:00
#SBATCH --output=build-%j.log

set -euxo pipefail
BUILD=$(mktemp -d -p "${TMPDIR:-/tmp}" build.XXXX)
trap 'rm -rf -- "$BUILD"' EXIT
git -C "$SLURM_SUBMIT_DIR" rev-parse HEAD
git -C "$SLURM_SUBMIT_DIR" status --porcelain | head
cmake -S "$SLURM_SUBMIT_DIR" -B "$BUILD" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DENABLE_CUDA=OFF -DCMAKE_CXX_FLAGS="-Wall -Wextra"
cmake --build "$BUILD" -j "${SLURM_CPUS_PER_TASK}"
ctest --test-dir "$BUILD" -j4 --output-on-failure --repeat until-fail:2
