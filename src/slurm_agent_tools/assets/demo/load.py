"""Reads a data set that does not fit: 16M more every tenth of a second, far beyond what the job asked for."""

import time

rows = []
for part in range(1, 65):
    rows.append(b"x" * (16 * 2**20))
    print(f"loaded {16 * part}M", flush=True)
    time.sleep(0.1)
