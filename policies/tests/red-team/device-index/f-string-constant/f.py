import torch

GPU = 1
x = torch.ones(3, device=f"cuda:{GPU}")
