import pytorch_lightning as pl

trainer = pl.Trainer(accelerator="gpu", devices=1, num_nodes=1, strategy="auto")
print(trainer.local_rank)
