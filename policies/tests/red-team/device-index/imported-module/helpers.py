import torch


def put():
    return torch.zeros(2).to("cuda:3")
