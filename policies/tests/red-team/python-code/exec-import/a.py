import importlib

lib = importlib.import_module("submitit")
