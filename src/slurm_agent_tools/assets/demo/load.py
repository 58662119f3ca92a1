"""Reads a data set that does not quite fit into what the job asked for, and works on it for some seconds."""

from __future__ import annotations

import time

rows = []

for part in range(1, 21):
    rows.append(b"x" * (16 * 2**20))
    print(f"loaded {16 * part}M of 320M", flush=True)
    time.sleep(0.1)

time.sleep(6)

print(f"went through {sum(map(len, rows)) // 2**20}M", flush=True)
