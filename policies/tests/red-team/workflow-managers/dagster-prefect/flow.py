from prefect_dask import DaskTaskRunner

runner = DaskTaskRunner(cluster_class="dask_jobqueue.SLURMCluster", cluster_kwargs={"queue": "gpu"})
