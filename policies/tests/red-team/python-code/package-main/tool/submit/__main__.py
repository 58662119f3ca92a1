import os

os.system("sbatch next.sh")
