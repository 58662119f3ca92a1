import covalent as ct

executor = ct.executor.SlurmExecutor(username="ada", address="login01")
