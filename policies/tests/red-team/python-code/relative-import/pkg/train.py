from . import model

print(model)
