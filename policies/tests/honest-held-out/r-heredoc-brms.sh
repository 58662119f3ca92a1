#!/bin/bash
#SBATCH -J brms
#SBATCH -c 4
#SBATCH --mem=8G
#SBATCH -t 5:00:00

source ~/.bash_profile
module load gcc R

R --no-save --quiet <<'RCODE'
library(brms)
options(mc.cores = as.integer(Sys.getenv("SLURM_CPUS_PER_TASK", "4")))
d <- read.csv("trial.csv")
fit <- brm(y | trials(n) ~ treat + (1 | site), data = d, family = binomial(),
           chains = 4, iter = 4000, seed = 42)
saveRDS(fit, sprintf("fit_%s.rds", Sys.getenv("SLURM_JOB_ID")))
print(summary(fit), digits = 3)
q("no")
RCODE
echo "R ended with $?"
