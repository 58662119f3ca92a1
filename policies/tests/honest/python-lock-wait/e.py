import os
import time

while True:
    try:
        fd = os.open("x.lock", os.O_CREAT | os.O_EXCL)
        break
    except FileExistsError:
        time.sleep(1)
os.close(fd)
