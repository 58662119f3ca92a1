#!/bin/bash
#SBATCH -c 16 --mem=16G
python - <<'EOF'
import os
from sklearn.model_selection import GridSearchCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
g = GridSearchCV(RandomForestClassifier(), {"n_estimators": [100, 300]}, n_jobs=int(os.environ["SLURM_CPUS_PER_TASK"]))
print(g.fit(X, y).best_params_)
EOF
