import pytorch_lightning as pl

trainer = pl.Trainer(accelerator="gpu", devices=1)
trainer.fit(object())
