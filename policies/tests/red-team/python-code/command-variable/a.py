import subprocess

cmd = ["sbatch", "-p", "gpu"]
cmd += ["run.sh"]
subprocess.run(cmd, check=True)
