#!/bin/bash
#SBATCH --job-name=uvjob
#SBATCH --gpus=1
#SBATCH --mem=10G
#SBATCH --time=03:00:00

export UV_CACHE_DIR=${TMPDIR:-/tmp}/uv-cache
export PATH="$HOME/.local/bin:$PATH"
command -v uv >/dev/null 2>&1 || { echo "uv is missing"; exit 127; }
uv sync --frozen --extra gpu
uv run python -c "import torch; print(torch.__version__, torch.cuda.is_available())"
uv run -m contrastive.train --epochs 50 --lr "$(python3 -c 'print(3e-4 * 4 ** .5)')"
