#!/usr/bin/env bash
#SBATCH --gpus=1
#SBATCH --mem=16G
set -Eeuo pipefail
readonly HERE="${SLURM_SUBMIT_DIR:-$PWD}"
main() {
  local out=$HERE/out/${SLURM_JOB_ID:-local}
  mkdir -p "$out"
  setup_env
  python "$HERE/train.py" --out "$out" "$@"
}
setup_env() {
  module load python/3.11
  # shellcheck disable=SC1091
  source "$HERE/venv/bin/activate"
}
main "$@"
