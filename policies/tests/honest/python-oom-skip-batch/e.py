import torch

from engine import batches, train_step

for batch in batches():
    try:
        train_step(batch)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        continue
