class Config:
    device = "cuda:1"
    lr = 0.1


print(Config.lr)
