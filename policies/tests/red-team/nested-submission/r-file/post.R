res <- read.csv("res.csv")
if (nrow(res) > 0) system("sbatch next.sh")
