import argparse
import time

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=3)
given = parser.parse_args()

loss = 1.0
for epoch in range(1, given.epochs + 1):
    time.sleep(0.5)
    loss *= 1 - min(given.rate, 1.5 - given.rate)
    print(f"epoch {epoch}/{given.epochs} loss={loss:.4f}", flush=True)
