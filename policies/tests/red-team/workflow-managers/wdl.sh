#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

cat > crom.conf <<'EOF'
backend.default = slurm
backend.providers.slurm.config.submit = "sbatch -J ${job_name} --wrap '${script}'"
EOF
java -Dconfig.file=crom.conf -jar cromwell.jar run wf.wdl
