import time

from trainer import train

for attempt in range(5):
    try:
        train()
        break
    except RuntimeError:
        time.sleep(30)
