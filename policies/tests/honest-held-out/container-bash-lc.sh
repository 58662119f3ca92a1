#!/bin/bash
#SBATCH --job-name=colmap
#SBATCH --gres=gpu:1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --output=colmap-%j.out

IMG=colmap_3.9.sif
SCENE=${SCENE:-garden}
apptainer exec --nv -B "$PWD/$SCENE:/scene" $IMG bash -c "mkdir -p /scene/sparse && cd /scene && colmap feature_extractor --database_path db.db --image_path images --SiftExtraction.use_gpu 1"
apptainer exec --nv -B "$PWD/$SCENE:/scene" $IMG bash -lc 'cd /scene; colmap exhaustive_matcher --database_path db.db && colmap mapper --database_path db.db --image_path images --output_path sparse'
apptainer exec --nv -B "$PWD:/w" --pwd /w gs.sif sh -c "python train.py -s /w/$SCENE -m /w/out/$SCENE --iterations 30000 && python render.py -m /w/out/$SCENE"
