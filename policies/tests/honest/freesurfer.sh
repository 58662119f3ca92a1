#!/bin/bash
#SBATCH --array=1-60%4 --mem=8G -t 20:00:00
export FREESURFER_HOME=/opt/freesurfer
source $FREESURFER_HOME/SetUpFreeSurfer.sh
export SUBJECTS_DIR=$PWD/subjects
SUB=$(awk "NR==$SLURM_ARRAY_TASK_ID" subjects.txt)
recon-all -s "$SUB" -i nii/"$SUB".nii.gz -all
