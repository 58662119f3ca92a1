import pyslurm

pyslurm.job().submit_batch_job({"script": "x.sh"})
