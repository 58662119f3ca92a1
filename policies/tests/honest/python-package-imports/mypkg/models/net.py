def fit(data, device):
    for epoch in range(3):
        for batch in data:
            try:
                step(batch)
            except ValueError:
                continue


def step(batch):
    return batch
