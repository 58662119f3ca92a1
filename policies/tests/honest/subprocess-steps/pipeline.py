import subprocess
import sys

for stage in ("prep", "align", "call"):
    done = subprocess.run(["bash", f"stages/{stage}.sh"])
    if done.returncode != 0:
        sys.exit(f"{stage} failed")
