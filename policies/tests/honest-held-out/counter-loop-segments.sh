#!/bin/bash
#SBATCH --job-name=segments
#SBATCH --ntasks=8
#SBATCH --nodes=1
#SBATCH --mem=8G
#SBATCH --time=20:00:00

i=$(cat segment.count 2>/dev/null || echo 0)
last=12
while [ $i -lt $last ]; do
    next=$((i+1))
    echo "segment $next of $last, $(date -u +%FT%TZ)"
    sed "s/@START@/$i/; s/@STOP@/$next/" control.tmpl > control
    mpirun ./nemo.exe > nemo.$next.log 2>&1 || { echo "segment $next failed, see nemo.$next.log"; exit 1; }
    mv restart_out.nc restart_in.nc
    i=$next
    echo $i > segment.count
done
echo all done
