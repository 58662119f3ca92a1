#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

stage=0
stop_stage=100
nj=8
. ./utils/parse_options.sh || exit 1
if [ $stage -le 1 ] && [ $stop_stage -ge 1 ]; then
  echo "stage 1: features"
  steps/make_mfcc.sh --nj $nj --cmd run.pl data/train
fi
if [ $stage -le 2 ]; then
  python train_am.py --data data/train
fi
