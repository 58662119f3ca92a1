from models import MODELS, evaluate_model

results = {}
for name in MODELS:
    try:
        results[name] = evaluate_model(name)
    except MemoryError as error:
        print(name, "does not fit:", error)
print(results)
