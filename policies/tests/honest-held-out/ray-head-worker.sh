#!/bin/bash
#SBATCH --job-name=ray-tune
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=6
#SBATCH --mem=16G
#SBATCH --time=09:00:00
#SBATCH --output=ray-%j.log

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
if [[ "$ip" == *" "* ]]; then
  IFS=' ' read -ra ADDR <<<"$ip"
  if [[ ${#ADDR[0]} -gt 16 ]]; then ip=${ADDR[1]}; else ip=${ADDR[0]}; fi
fi
port=6379
ip_head=$ip:$port
export ip_head
redis_password=$(uuidgen)
export redis_password

srun --nodes=1 --ntasks=1 -w "$head_node" \
    ray start --head --node-ip-address="$ip" --port=$port --redis-password="$redis_password" \
    --num-cpus "${SLURM_CPUS_PER_TASK}" --num-gpus 1 --block &
sleep 10
worker_num=$((SLURM_JOB_NUM_NODES - 1))
for ((i = 1; i <= worker_num; i++)); do
    node_i=${nodes_array[$i]}
    srun --nodes=1 --ntasks=1 -w "$node_i" \
        ray start --address "$ip_head" --redis-password="$redis_password" \
        --num-cpus "${SLURM_CPUS_PER_TASK}" --num-gpus 1 --block &
    sleep 5
done
python -u tune_asha.py "$SLURM_CPUS_PER_TASK"
