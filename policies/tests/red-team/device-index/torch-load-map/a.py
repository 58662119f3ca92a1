import torch

state = torch.load("x.pt", map_location="cuda:1")
