#!/bin/bash
#SBATCH -J les_channel
#SBATCH -A cfd
#SBATCH -N 2
#SBATCH --ntasks-per-node=16
#SBATCH --mem=16G
#SBATCH -t 1-00:00:00
#SBATCH -o les.%j.log
#SBATCH --signal=B:USR1@900
#SBATCH --no-requeue

. /etc/profile
module -q purge
module -q load gcc/11 openmpi/4.1.5 openfoam/v2306

CASE=$PWD
ARCHIVE=${ARCHIVE:-$HOME/archive/$(basename "$CASE")}
DT=0.0005
WINDOW=2.0

latest_time() {
    # largest numeric folder of processor0
    ls -1 processor0 2>/dev/null | grep -E '^[0-9]+(\.[0-9]+)?$' | sort -g | tail -n 1
}

control() {   # control KEY VALUE
    foamDictionary -disableFunctionEntries -entry "$1" -set "$2" system/controlDict > /dev/null
}

t0=$(latest_time)
if [[ -z $t0 ]]; then
    t0=0
    blockMesh > log.blockMesh 2>&1 || { tail log.blockMesh; exit 1; }
    decomposePar -force > log.decomposePar 2>&1
fi
t1=$(awk -v a="$t0" -v w="$WINDOW" 'BEGIN { printf "%.6g", a + w }')
steps=$(bc <<< "scale=0; $WINDOW / $DT")
echo "from t = $t0 to t = $t1, $steps steps"

control startFrom latestTime
control endTime   "$t1"
control deltaT    "$DT"
control writeInterval "$(echo "$steps / 20" | bc)"
control stopAt endTime

ask_to_stop() {
    echo "$(date) 15 minutes are left: the solver shall write and stop"
    control stopAt writeNow
}
trap ask_to_stop USR1

mpirun pimpleFoam -parallel > "log.pimpleFoam.$SLURM_JOB_ID" 2>&1 &
solver=$!
while kill -0 "$solver" 2>/dev/null; do
    wait "$solver"
    rc=$?
done

echo "solver ended with $rc at t = $(latest_time)"
awk '/^Time = /{t=$3} /Courant Number mean/{print t, $NF}' "log.pimpleFoam.$SLURM_JOB_ID" > courant.dat
max=$(sort -k2,2g courant.dat | tail -n1 | cut -d' ' -f2)
if (( $(echo "${max:-0} > 1.0" | bc -l) )); then
    echo "WARNING: Courant number up to $max"
fi

mkdir -p "$ARCHIVE"
for f in postProcessing/*/; do
    tar -C "$CASE" -rf "$ARCHIVE/post.tar" "$f"
done
( cd processor0 && ls -d [0-9]* | sort -g | head -n -3 ) | while read -r old; do
    [[ $old == 0 ]] && continue
    for p in processor*; do rm -rf "${p:?}/$old"; done
done
du -sh "$CASE" "$ARCHIVE"
exit "$rc"
