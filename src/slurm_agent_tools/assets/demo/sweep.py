"""A small real training: a logistic regression by gradient descent, in pure Python, the same on every run."""

from __future__ import annotations

import argparse
import math
import random

parser = argparse.ArgumentParser()

parser.add_argument("--rate", type=float, required=True)

parser.add_argument("--batch", type=int, required=True)

parser.add_argument("--epochs", type=int, required=True)

args = parser.parse_args()

source = random.Random(7)  # noqa: S311 - the same data on every run


def sample() -> tuple[list[float], int]:
    """Two features of very different size, and the class that a line between them gives, with some noise."""
    x, y = source.gauss(0, 1), source.gauss(0, 0.05)
    return [1.0, x, y], int(x + 30 * y + source.gauss(0, 0.4) > 0)


rows = [sample() for _ in range(600)]

training, held_out = rows[:400], rows[400:]

weights = [0.0, 0.0, 0.0]


def chance(features: list[float]) -> float:
    """How likely the first class is."""
    total = sum(weight * feature for weight, feature in zip(weights, features, strict=True))
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, total))))


for epoch in range(1, args.epochs + 1):
    source.shuffle(training)
    for begin in range(0, len(training), args.batch):
        part = training[begin : begin + args.batch]
        slopes = [0.0, 0.0, 0.0]
        for features, wanted in part:
            error = chance(features) - wanted
            slopes = [slope + error * feature for slope, feature in zip(slopes, features, strict=True)]
        weights = [weight - args.rate * slope / len(part) for weight, slope in zip(weights, slopes, strict=True)]
    losses = [-math.log(max(1e-12, chance(f) if wanted else 1 - chance(f))) for f, wanted in held_out]
    right = sum((chance(features) > 0.5) == bool(wanted) for features, wanted in held_out)
    print(f"epoch {epoch} loss={sum(losses) / len(losses):.4f} accuracy={right / len(held_out):.3f}", flush=True)
