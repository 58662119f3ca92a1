import torch

x = torch.zeros(3).cuda(1)
