#!/bin/bash
#SBATCH -c 16 --mem=16G
export SPARK_LOCAL_DIRS=$TMPDIR
start-master.sh
start-worker.sh spark://$(hostname):7077
spark-submit --master spark://$(hostname):7077 --executor-memory 4G job.py
stop-worker.sh; stop-master.sh
