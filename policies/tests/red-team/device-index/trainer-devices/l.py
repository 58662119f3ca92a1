import lightning as L

trainer = L.Trainer(accelerator="gpu", devices=[1], max_epochs=3)
trainer.fit(object())
