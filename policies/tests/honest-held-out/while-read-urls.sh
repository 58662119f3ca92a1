#!/bin/bash
#SBATCH --job-name=fetch
#SBATCH --mem=2G
#SBATCH --time=12:00:00
#SBATCH --output=fetch.%j.log

mkdir -p raw
while IFS=, read -r -u 3 id url md5; do
    target="raw/${id}.nc"
    if [[ -f $target ]] && md5sum --status -c <<< "$md5  $target"; then
        echo "have $id"; continue
    fi
    curl --fail --location --retry 3 --retry-delay 10 -C - -o "$target" "$url"
    md5sum -c - <<< "$md5  $target" || echo "$id" >> broken.txt
done 3< urls.csv
[ -s broken.txt ] && { echo "broken downloads:"; cat broken.txt; }
exit 0
