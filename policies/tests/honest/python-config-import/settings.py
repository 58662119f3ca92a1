DEVICE = "cuda"
SEED = 3
