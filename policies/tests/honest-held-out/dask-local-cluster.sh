#!/bin/bash
#SBATCH --job-name=dask
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=01:00:00
source ~/.bashrc
mamba activate pangeo
export DASK_TEMPORARY_DIRECTORY=$TMPDIR MALLOC_TRIM_THRESHOLD_=65536
python <<'PY'
import os
from dask.distributed import Client, LocalCluster
import xarray as xr

if __name__ == "__main__":
    n = int(os.environ["SLURM_CPUS_PER_TASK"])
    with LocalCluster(n_workers=n, threads_per_worker=1, memory_limit="1900MB") as cluster, Client(cluster) as client:
        print(client.dashboard_link)
        ds = xr.open_mfdataset("era5/*.nc", parallel=True, chunks={"time": 240})
        ds.groupby("time.month").mean().to_netcdf("climatology.nc")
PY
