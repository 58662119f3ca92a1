#!/bin/bash
#SBATCH --job-name=consumer
#SBATCH --mem=4G
#SBATCH --time=08:00:00

FLAG=shared/stage1.done
n=0
until [ -f "$FLAG" ]; do
    sleep 60
    n=$((n + 1))
    if [ $n -ge 240 ]; then
        echo "stage 1 is not finished after four hours, giving up"
        exit 1
    fi
done
echo "waited $n minutes"
python -m pipeline.stage2 --in shared/stage1 --out shared/stage2 && touch shared/stage2.done
