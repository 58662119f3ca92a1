#!/usr/bin/env Rscript
#SBATCH --mem=8G
#SBATCH --time=01:00:00
x <- rnorm(100)
print(mean(x))
