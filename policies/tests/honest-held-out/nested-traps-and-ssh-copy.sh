#!/bin/bash
#SBATCH --job-name=traps
#SBATCH --mem=8G
#SBATCH --time=20:00:00
#SBATCH --signal=B:USR2@600

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap '' HUP
stop=0
trap 'stop=1; echo "USR2: the current chunk is the last one"' USR2

for chunk in chunks/*; do
    (( stop )) && break
    ./filter < "$chunk" > "$tmp/out" & wait $! || continue
    mv "$tmp/out" "done/${chunk##*/}"
done
trap - USR2
left=$(comm -23 <(ls chunks) <(ls done) | wc -l)
echo "$left chunks are left"
scp -q -o BatchMode=yes done/* store.example.edu:filtered/ || echo "copy failed, files stay in done/"
