#!/bin/bash
#SBATCH --job-name=progs
#SBATCH --mem=10G
#SBATCH --cpus-per-task=4
#SBATCH --time=05:00:00

PYTHON=$(which python3)
JAVA=$JAVA_HOME/bin/java
BIN=$HOME/apps/bin
SCRIPT=$SLURM_SUBMIT_DIR/annotate.py
MPIRUN=${MPIRUN:-mpirun}
TIME="/usr/bin/time -v"

$PYTHON -V
$JAVA -Xmx8g -jar "$HOME/apps/snpEff/snpEff.jar" -nodownload GRCh38.105 in.vcf > ann.vcf
"$BIN"/bcftools view -Oz -o ann.vcf.gz ann.vcf
$TIME $PYTHON "$SCRIPT" --vcf ann.vcf.gz --threads "$SLURM_CPUS_PER_TASK"
$MPIRUN -np 1 "$BIN/phase" ann.vcf.gz
${EDITOR_FOR_LOGS:-cat} summary.txt
