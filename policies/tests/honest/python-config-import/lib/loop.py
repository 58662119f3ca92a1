import os


def run(settings):
    rank = int(os.environ.get("LOCAL_RANK", 0))
    device = f"{settings.DEVICE}:{rank}"
    print(device, os.environ.get("CUDA_VISIBLE_DEVICES"))
