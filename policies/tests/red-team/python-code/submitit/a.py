import submitit

executor = submitit.AutoExecutor(folder="logs")
executor.submit(print, 1)
