cfg = {"model": "vit", "device": "cuda:1", "lr": 1e-3}
print(cfg["lr"])
