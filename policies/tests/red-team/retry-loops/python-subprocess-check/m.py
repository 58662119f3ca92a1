import subprocess
import time

while True:
    try:
        subprocess.check_call(["python", "train.py", "--resume"])
    except subprocess.CalledProcessError:
        time.sleep(60)
        continue
    break
