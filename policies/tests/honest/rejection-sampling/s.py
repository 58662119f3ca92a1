import random


def draw():
    while True:
        x = random.gauss(0, 1)
        if abs(x) < 2:
            return x


print([draw() for _ in range(10)])
