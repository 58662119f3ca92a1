import torch
import torch.multiprocessing as mp


def work(rank, world):
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    print(device, world)


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(work, args=(n,), nprocs=n)
