from numba import cuda

cuda.select_device(1)
