import itertools
import traceback

from model import train

for lr, wd in itertools.product([1e-3, 1e-4], [0, 0.1]):
    try:
        train(lr=lr, wd=wd)
    except RuntimeError:
        traceback.print_exc()
        continue
