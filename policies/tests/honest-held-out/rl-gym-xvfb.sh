#!/bin/bash
#SBATCH --job-name=ppo
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=18:00:00
#SBATCH --output=logs/%A.out

export MUJOCO_GL=egl PYOPENGL_PLATFORM=egl
export DISPLAY=:$((SLURM_JOB_ID % 1000))
source $HOME/venvs/rl/bin/activate

for env in HalfCheetah-v4 Hopper-v4; do
  for seed in 0 1 2; do
    tag=${env,,}_s$seed
    xvfb-run -a -s "-screen 0 640x480x24" \
      timeout 3h python cleanrl/ppo_continuous_action.py --env-id "$env" --seed "$seed" --cuda True --capture-video --track False > "logs/$tag.txt" 2>&1
    [ $? -eq 124 ] && echo "$tag stopped after three hours"
  done
done
