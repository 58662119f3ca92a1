#!/bin/bash
#SBATCH --job-name=fsl
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=10:00:00
#SBATCH --output=logs/fsl-%j.log

export FSLDIR=/opt/fsl
. ${FSLDIR}/etc/fslconf/fsl.sh
PATH=${FSLDIR}/bin:${PATH}

run() {
    echo "+ $*"
    local t0=$SECONDS
    "$@"
    local rc=$?
    echo "  -> $rc after $((SECONDS - t0)) s"
    return $rc
}

for s in sub-{01..12}; do
    run bet bids/$s/anat/${s}_T1w.nii.gz deriv/${s}_brain -R -f 0.4 || continue
    run fast -t 1 -n 3 -o deriv/$s deriv/${s}_brain
    run flirt -in deriv/${s}_brain -ref $FSLDIR/data/standard/MNI152_T1_2mm_brain -omat deriv/$s.mat -out deriv/${s}_mni
done
