"""Each process adds its rank to those of the others, by MPI."""

import os

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
os.write(
    1, f"rank={world.rank} of={world.size} sum={total} node={os.environ['SLURMD_NODENAME']}\n".encode()
)  # in one piece
