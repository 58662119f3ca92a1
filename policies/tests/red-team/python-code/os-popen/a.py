import os

jobs = os.popen("sbatch run.sh").read()
