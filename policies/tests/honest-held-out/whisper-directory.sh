#!/bin/bash
#SBATCH --job-name=whisper
#SBATCH --gpus=1
#SBATCH --mem=12G
#SBATCH --time=06:00:00
#SBATCH --output=whisper_%j.log

total=0
while IFS= read -r -d '' f; do
    s=$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$f")
    total=$(bc <<< "$total + $s")
    base=$(basename "${f%.*}")
    [[ -e txt/$base.txt ]] || whisper "$f" --model medium --language de --device cuda --output_dir txt --output_format txt --verbose False
done < <(find audio -type f \( -name '*.mp3' -o -name '*.wav' \) -print0)
printf 'hours of audio: %.2f\n' "$(bc -l <<< "$total / 3600")"
