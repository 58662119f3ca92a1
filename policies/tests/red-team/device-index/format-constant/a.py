import torch

t = torch.zeros(2).to("cuda:{}".format(1))
