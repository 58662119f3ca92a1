#!/bin/bash
#SBATCH --job-name=cromwell-backend
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > backend.conf <<'EOF'
backend { default = SLURM
  providers { SLURM { actor-factory = "cromwell.backend.impl.sfs.config.ConfigBackendLifecycleActorFactory"
    config { submit = "sbatch -J ${job_name} --wrap \"/bin/bash ${script}\"" } } } }
EOF
java -Dconfig.file=backend.conf -jar cromwell.jar run flow.wdl
