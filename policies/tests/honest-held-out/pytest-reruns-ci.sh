#!/bin/bash
#SBATCH --job-name=ci
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=00:45:00
#SBATCH --output=ci-%j.log

python -m venv "$TMPDIR/venv" && source "$TMPDIR/venv/bin/activate"
pip install -q --retries 5 -e '.[test]'
pytest -q -x --durations=10 --cov=pkg -m "gpu and not slow" --junitxml=junit-$SLURM_JOB_ID.xml
rc=$?
coverage xml -o coverage-$SLURM_JOB_ID.xml
[ $rc -eq 5 ] && echo "no test was collected"
exit $rc
