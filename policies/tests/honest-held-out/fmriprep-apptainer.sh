#!/bin/bash
#SBATCH --job-name=fmriprep
#SBATCH --array=0-23%2
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=1-00:00:00
#SBATCH --output=logs/fmriprep_%A-%a.out
#SBATCH --error=logs/fmriprep_%A-%a.err

BIDS_DIR="$HOME/study/bids"
WORK=/scratch/$USER/fmriprep_work
mapfile -t subjects < <(cut -f1 "$BIDS_DIR/participants.tsv" | tail -n +2)
subject=${subjects[SLURM_ARRAY_TASK_ID]#sub-}

export APPTAINERENV_FS_LICENSE=$HOME/.licenses/freesurfer.txt
export APPTAINERENV_TEMPLATEFLOW_HOME=/templateflow
find "$BIDS_DIR/derivatives/freesurfer/sub-$subject/" -name "*IsRunning*" -delete 2>/dev/null

cmd="apptainer run --cleanenv -B $BIDS_DIR:/data -B $HOME/.cache/templateflow:/templateflow -B $WORK:/work fmriprep-23.1.4.simg /data /data/derivatives participant --participant-label $subject -w /work/ -vv --omp-nthreads 8 --nthreads 12 --mem_mb 15000 --output-spaces MNI152NLin2009cAsym:res-2 anat fsnative"

echo "Running task ${SLURM_ARRAY_TASK_ID}"
echo "Commandline: $cmd"
$cmd
exitcode=$?
printf 'sub-%s\t%s\t%s\n' "$subject" "$SLURM_ARRAY_TASK_ID" "$exitcode" >> fmriprep.tsv
exit $exitcode
