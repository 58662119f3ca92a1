from model import train_fold

scores = []
for fold in range(5):
    try:
        scores.append(train_fold(fold))
    except ValueError as error:
        print("fold", fold, "failed:", error)
print(scores)
