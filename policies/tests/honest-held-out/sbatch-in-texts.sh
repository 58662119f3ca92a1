#!/bin/bash
#SBATCH --job-name=docs
#SBATCH --mem=1G
#SBATCH --time=00:10:00

command -v sbatch > /dev/null && echo "slurm clients are installed"
grep -hE '^#SBATCH' jobs/*.sh | sort | uniq -c | sort -rn > directives.txt
cat > README.run <<'EOF'
How to run this again
  sbatch jobs/train.sh
  sbatch --dependency=afterok:JOBID jobs/eval.sh
For a shell use: srun --pty bash -i
Never: export CUDA_VISIBLE_DEVICES=0
EOF
echo "next: sbatch jobs/eval.sh" >> README.run
printf '%s\n' "scontrol requeue is not used here" "salloc neither"
cp -p "$0" used_script_$SLURM_JOB_ID.sh
scontrol show config | grep -iE 'SelectType|ConstrainDevices'
scontrol write batch_script "$SLURM_JOB_ID" - | md5sum
pandoc README.run -o README.pdf
