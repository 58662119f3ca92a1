#!/bin/bash
#SBATCH --job-name=counts
#SBATCH --nodes=1
#SBATCH --gpus=2
#SBATCH --mem=32G
#SBATCH --time=12:00:00

NGPUS=$(nvidia-smi -L | wc -l)
python tools/train.py configs/faster_rcnn_r50.py --launcher none --num-gpus "$NGPUS"
bash tools/dist_train.sh configs/faster_rcnn_r50.py 2
python -m detectron2.tools.train_net --num-gpus 2 --config-file cfg.yaml SOLVER.IMS_PER_BATCH 8
fairseq-train data-bin --distributed-world-size 2 --fp16 --max-tokens 4096 --arch transformer
relion_refine_mpi --gpu --j 4 --i particles.star --o Refine3D/run --pool 30
mace_run_train --device=cuda --default_dtype=float32 --max_num_epochs=200 --name=mace_$SLURM_JOB_ID
./hoomd_run.py --mode=gpu --nsteps 1e6
