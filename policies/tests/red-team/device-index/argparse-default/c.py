import argparse

p = argparse.ArgumentParser()
p.add_argument("--device", default="cuda:1")
p.parse_args()
