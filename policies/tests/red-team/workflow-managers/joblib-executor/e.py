from executorlib import SlurmClusterExecutor

with SlurmClusterExecutor() as exe:
    exe.submit(sum, [1, 2])
