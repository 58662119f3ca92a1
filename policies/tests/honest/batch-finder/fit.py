import torch


def largest(model):
    size = 512
    while size > 1:
        if fits(model, size):
            return size
        size //= 2
    return 1


def fits(model, size):
    return torch.cuda.mem_get_info()[0] > size * 2**20


print(largest(None))
