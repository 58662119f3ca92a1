"""Programs that several tasks' projects have."""

from __future__ import annotations

TRAIN = """import argparse, json, pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--rate", type=float, default=0.1)
asked = parser.parse_args()
for epoch in range(1, asked.epochs + 1):
    loss = 1 / epoch + abs(asked.rate - 0.1)
    print(f"epoch {epoch}/{asked.epochs} train_loss: {loss:.4f}", flush=True)
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path(f"out/rate-{asked.rate}.json").write_text(json.dumps({"train_loss": loss}))
"""
"""The loss after five epochs at a rate of 0.1 is 0.2, which no other rate reaches."""

RESUMES = """import argparse, json, pathlib, time

parser = argparse.ArgumentParser()
parser.add_argument("--megabytes", type=int, default=0)
parser.add_argument("--pause", type=float, default=0)
parser.add_argument("--resume", action="store_true", help="go on from checkpoint.json")
asked, checkpoint = parser.parse_args(), pathlib.Path("checkpoint.json")
begun = json.loads(checkpoint.read_text())["epoch"] if asked.resume else 0
for epoch in range(begun + 1, 9):
    print(f"epoch {epoch}/8 train_loss: {1 / epoch:.4f}", flush=True)
    checkpoint.write_text(json.dumps({"epoch": epoch}))
    if epoch == max(4, begun + 1):
        held = bytearray(asked.megabytes * 2**20)
        held[::4096] = b"x" * len(held[::4096])
    if epoch == 4:
        time.sleep(asked.pause)
pathlib.Path("model.json").write_text(json.dumps({"begun": begun, "epoch": epoch}))
"""
"""Eight epochs; from the fourth on it needs its memory, and it pauses after that one, so that a limit can end it there.
It leaves checkpoint.json, and model.json."""
