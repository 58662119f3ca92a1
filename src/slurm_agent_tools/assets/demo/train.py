"""Stands in for a training: a loss that falls, an accuracy that rises, a line for each epoch."""

from __future__ import annotations

import argparse
import os
import time

parser = argparse.ArgumentParser()

parser.add_argument("--epochs", type=int, default=4)

epochs = parser.parse_args().epochs

print("devices from Slurm:", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)

for epoch in range(1, epochs + 1):
    time.sleep(3)
    print(f"epoch {epoch}/{epochs} loss={0.9 / epoch:.4f} accuracy={1 - 0.4 / epoch:.4f}", flush=True)
