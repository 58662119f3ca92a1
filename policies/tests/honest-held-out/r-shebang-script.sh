#!/usr/bin/env Rscript
#SBATCH --job-name=boot
#SBATCH --mem=2G
#SBATCH --time=00:30:00
#SBATCH --output=boot.%j.txt

id <- Sys.getenv("SLURM_JOB_ID")
cat("job", id, "started", format(Sys.time()), "\n")
x <- rexp(500, rate = 2)
b <- replicate(10000, mean(sample(x, replace = TRUE)))
print(quantile(b, c(.025, .5, .975)))
saveRDS(b, paste0("boot_", id, ".rds"))
