#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

while getopts ":d:m:s:" o; do
  case $o in
    d) DATA=$OPTARG ;;
    m) MODEL=$OPTARG ;;
    s) SEED=$OPTARG ;;
    \?) echo "bad option -$OPTARG" >&2; exit 1 ;;
  esac
done
shift $((OPTIND - 1))
python main.py --data ${DATA:-cifar10} --model ${MODEL:-vit} --seed ${SEED:-0} "$@"
