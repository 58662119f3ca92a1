from dask_jobqueue import SLURMCluster

cluster = SLURMCluster(cores=8, memory="16GB")
cluster.scale(jobs=10)
