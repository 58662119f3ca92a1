#!/bin/bash
#SBATCH --job-name=spark
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=03:00:00

module load spark/3.5 java/17
export SPARK_LOG_DIR=$PWD/spark-logs SPARK_WORKER_DIR=${TMPDIR:-/tmp}/spark-work
start-master.sh --host "$(hostname -f)" --port 7077
MASTER=spark://$(hostname -f):7077
srun spark-class org.apache.spark.deploy.worker.Worker -c 8 -m 14g "$MASTER" &> spark-logs/workers.log &
sleep 15
spark-submit --master "$MASTER" --executor-memory 12g --total-executor-cores 16 jobs/aggregate.py --input data/parquet --output data/out
stop-master.sh
