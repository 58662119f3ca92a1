#!/bin/bash
#SBATCH --job-name=pyinline
#SBATCH --mem=6G
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00

python3 - "$@" <<'EOF'
import concurrent.futures as cf
import os
import shutil
import subprocess
from pathlib import Path

env = dict(os.environ, OMP_NUM_THREADS="1")
exe = shutil.which("dssp") or "mkdssp"

def one(p: Path) -> str:
    subprocess.run([exe, str(p), str(p.with_suffix(".dssp"))], env=env, check=True)
    return p.stem

with cf.ThreadPoolExecutor(int(os.environ.get("SLURM_CPUS_PER_TASK", 1))) as pool:
    for name in pool.map(one, sorted(Path("pdb").glob("*.cif"))):
        print(name, flush=True)
n = subprocess.check_output("ls pdb/*.dssp | wc -l", shell=True, text=True)
print(n.strip(), "files", os.getenv("CUDA_VISIBLE_DEVICES", "no GPU"))
EOF
