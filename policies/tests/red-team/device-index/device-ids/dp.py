import torch
from torch import nn

net = nn.DataParallel(nn.Linear(2, 2), device_ids=[2, 3]).cuda()
