#!/bin/bash
#SBATCH --job-name=optuna
#SBATCH --cpus-per-task=8
#SBATCH --mem=12G
#SBATCH --time=12:00:00
#SBATCH --output=optuna-%j.log

STUDY=xgb-$(date +%m%d)
DB=sqlite:///optuna_$SLURM_JOB_ID.db
optuna create-study --study-name "$STUDY" --storage "$DB" --direction minimize --skip-if-exists
for (( w=0; w<4; w++ )); do
  OMP_NUM_THREADS=2 PYTHONHASHSEED=$w python tune.py --study "$STUDY" --storage "$DB" --trials 50 >"tune_$w.log" 2>&1 &
done
wait
python - <<EOF
import optuna
s = optuna.load_study(study_name="$STUDY", storage="$DB")
print(s.best_value, s.best_params)
EOF
