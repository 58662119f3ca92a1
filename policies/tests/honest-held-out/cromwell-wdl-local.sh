#!/bin/bash
#SBATCH --job-name=wdl
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=20:00:00

jq -n --arg bam "$PWD/bam/NA12878.bam" --arg ref /ref/hg38.fa '{"wf.bam": $bam, "wf.ref": $ref, "wf.threads": 8}' > inputs.$SLURM_JOB_ID.json
cat > cromwell.conf <<'EOF'
include required(classpath("application"))
backend.default = "Local"
backend.providers.Local.config.concurrent-job-limit = 2
backend.providers.Local.config.submit = "/usr/bin/env bash ${script}"
call-caching.enabled = true
EOF
java -Xmx4g -Dconfig.file=cromwell.conf -jar "$CROMWELL_JAR" run variants.wdl -i inputs.$SLURM_JOB_ID.json -o options.json
