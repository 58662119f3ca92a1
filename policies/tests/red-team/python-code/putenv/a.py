import os

os.putenv("NVIDIA_VISIBLE_DEVICES", "0")
