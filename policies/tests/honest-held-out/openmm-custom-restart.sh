#!/bin/bash
#SBATCH --job-name=openmm
#SBATCH --gpus=1
#SBATCH --mem=6G
#SBATCH --time=23:30:00
#SBATCH --output=openmm-%j.log

export OPENMM_DEFAULT_PLATFORM=CUDA OPENMM_CPU_THREADS=2
args=(--pdb complex.pdb --steps 250000000 --report 50000)
if compgen -G 'state_*.xml' > /dev/null; then
    newest=$(ls -t state_*.xml | head -n1)
    cp -p "$newest" "$newest.bak"
    args+=(--state "$newest")
fi
python - "${args[@]}" <<'PY'
import argparse
import openmm as mm
from openmm import unit
p = argparse.ArgumentParser()
p.add_argument("--pdb"); p.add_argument("--steps", type=int); p.add_argument("--report", type=int); p.add_argument("--state")
a = p.parse_args()
platform = mm.Platform.getPlatformByName("CUDA")
print(mm.__version__, platform.getName(), "temperature", 300 * unit.kelvin, a)
PY
python run_md.py "${args[@]}" --maxtime 23h
