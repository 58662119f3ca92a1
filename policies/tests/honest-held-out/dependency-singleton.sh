#!/bin/bash
#SBATCH --job-name=nightly-forecast
#SBATCH --dependency=singleton
#SBATCH --begin=now+1hour
#SBATCH --mem=6G
#SBATCH --time=02:00:00
#SBATCH --nice=100

STAMP=.last_run
today=$(date +%F)
if [[ -r $STAMP ]] && [[ $(< $STAMP) == "$today" ]]; then
  echo "already ran on $today"; exit 0
fi
python forecast.py --date "$today" --lead 72
printf '%s\n' "$today" >| $STAMP
