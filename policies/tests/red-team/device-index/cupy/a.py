import cupy

with cupy.cuda.Device(1):
    x = cupy.arange(3)
