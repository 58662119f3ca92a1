import torch

device = "cuda:1" if torch.cuda.is_available() else "cpu"
net = torch.load("net.pt").to(device)
