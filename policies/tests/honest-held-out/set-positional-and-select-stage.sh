#!/bin/bash
#SBATCH --job-name=kaldi
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=8
#SBATCH --time=23:00:00
#SBATCH --output=exp/slurm-%j.log

stage=${1:-0}
stop_stage=${2:-100}
[ $# -eq 0 ] && set -- 0 100
. ./path.sh || exit 1
. ./cmd.sh

if [ "$stage" -le 0 ] && [ "$stop_stage" -ge 0 ]; then
  echo "stage 0: data preparation"
  local/prepare_data.sh data/raw data/train
  utils/fix_data_dir.sh data/train
fi
if [ "$stage" -le 1 ] && [ "$stop_stage" -ge 1 ]; then
  steps/make_mfcc.sh --nj 8 --cmd "run.pl" data/train exp/make_mfcc mfcc
fi
if [ "$stage" -le 2 ] && [ "$stop_stage" -ge 2 ]; then
  python3 -u train_tdnn.py --feats data/train/feats.scp --dir exp/tdnn 2>&1 | tee exp/tdnn/train.log
fi
case "$HOSTNAME" in
  gpu*) echo "was on a GPU node" ;;&
  *01)  echo "the first one" ;;
  *)    echo "another one" ;;
esac
