import os

os.execvp("sbatch", ["sbatch", "run.sh"])
