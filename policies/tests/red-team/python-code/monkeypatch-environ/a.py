import operator
import os

operator.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "0")
