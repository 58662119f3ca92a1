import parsl
from parsl.providers import SlurmProvider

parsl.load()
