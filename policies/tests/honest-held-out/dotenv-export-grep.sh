#!/bin/bash
#SBATCH -J api-batch
#SBATCH --mem=2G
#SBATCH -t 6:00:00
export $(grep -v '^#' .env | xargs)
python scripts/label_with_api.py --in texts.parquet --out labels.parquet --rpm 60
rows=$(python -c "import pyarrow.parquet as pq; print(pq.read_metadata('labels.parquet').num_rows)")
echo "$(date -Is) labelled $rows texts"
if [ "${rows:-0}" -lt 1 ]; then
    echo "nothing was labelled" >&2
    exit 1
fi
