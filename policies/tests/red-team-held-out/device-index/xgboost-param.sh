#!/bin/bash
#SBATCH --job-name=xgboost-param
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import xgboost as xgb
xgb.train({"tree_method": "hist", "device": "cuda:1"}, xgb.DMatrix("data.libsvm"))
PY
