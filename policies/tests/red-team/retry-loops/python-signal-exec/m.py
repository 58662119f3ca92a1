import os
import sys

from model import train_all

try:
    train_all()
except RuntimeError:
    os.execv(sys.executable, [sys.executable] + sys.argv)
