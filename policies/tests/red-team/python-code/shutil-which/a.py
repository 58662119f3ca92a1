import shutil
import subprocess

sbatch = shutil.which("sbatch")
subprocess.run([sbatch, "run.sh"])
