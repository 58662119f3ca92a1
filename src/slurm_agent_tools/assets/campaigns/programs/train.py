"""A small training without any dependency: a network with one hidden layer learns which of two spirals a point is on.

It writes its metrics as JSON to --out, and a line for each epoch.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path


def points(count: int, draw: random.Random) -> list[tuple[float, float, float]]:
    """Points of two spirals, and which of both each is on."""
    found = []
    for _ in range(count):
        side, turn = draw.choice((0.0, 1.0)), draw.random()
        angle = 3.0 * turn + math.pi * side
        x, y = turn * math.cos(angle), turn * math.sin(angle)
        found.append((2 * x + draw.gauss(0, 0.05), 2 * y + draw.gauss(0, 0.05), side))
    return found


class Network:
    """Two inputs, one hidden layer, one output; weights and their momentum."""

    def __init__(self, hidden: int, draw: random.Random) -> None:
        self.inner = [[draw.gauss(0, 1), draw.gauss(0, 1), 0.0] for _ in range(hidden)]
        self.outer = [draw.gauss(0, 1) / math.sqrt(hidden) for _ in range(hidden + 1)]
        self.moved_inner = [[0.0] * 3 for _ in range(hidden)]
        self.moved_outer = [0.0] * (hidden + 1)

    def forward(self, x: float, y: float) -> tuple[list[float], float]:
        """The hidden layer's values and the probability of the second spiral."""
        hidden = [math.tanh(a * x + b * y + c) for a, b, c in self.inner]
        score = self.outer[-1] + sum(self.outer[index] * one for index, one in enumerate(hidden))
        return hidden, 1 / (1 + math.exp(-max(-40.0, min(40.0, score))))

    def learn(self, batch: list[tuple[float, float, float]], rate: float, momentum: float) -> None:
        """One step down the gradient of the cross entropy over a batch."""
        inner = [[0.0] * 3 for _ in self.inner]
        outer = [0.0] * len(self.outer)
        for x, y, side in batch:
            hidden, probability = self.forward(x, y)
            error = (probability - side) / len(batch)
            outer[-1] += error
            for index, one in enumerate(hidden):
                outer[index] += error * one
                back = error * self.outer[index] * (1 - one * one)
                inner[index][0] += back * x
                inner[index][1] += back * y
                inner[index][2] += back
        for index, slope in enumerate(outer):
            self.moved_outer[index] = momentum * self.moved_outer[index] - rate * slope
            self.outer[index] += self.moved_outer[index]
        for index, slopes in enumerate(inner):
            moved = self.moved_inner[index]
            for place, slope in enumerate(slopes):
                moved[place] = momentum * moved[place] - rate * slope
                self.inner[index][place] += moved[place]


def judged(network: Network, held: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Cross entropy and accuracy over points that were not learned from."""
    loss = right = 0.0
    for x, y, side in held:
        probability = network.forward(x, y)[1]
        loss -= math.log(max(1e-12, probability if side else 1 - probability))
        right += (probability > 0.5) == bool(side)
    return loss / len(held), right / len(held)


def main() -> None:
    """Train, and write what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    began = time.perf_counter()
    data = points(1200, random.Random(0))  # noqa: S311 - no secret; the same for all runs
    learned, held = data[:600], data[600:]
    draw = random.Random(given.seed)  # noqa: S311 - for the weights and the order
    network = Network(given.hidden, draw)
    for epoch in range(1, given.epochs + 1):
        draw.shuffle(learned)
        for start in range(0, len(learned), given.batch_size):
            network.learn(learned[start : start + given.batch_size], given.lr, given.momentum)
        loss, accuracy = judged(network, held)
        print(f"epoch {epoch}/{given.epochs} val_loss={loss:.4f} val_accuracy={accuracy:.3f}", flush=True)
    seconds = time.perf_counter() - began
    told = {"val_loss": loss, "val_accuracy": accuracy, "samples_per_second": given.epochs * len(learned) / seconds}
    Path(given.out).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
