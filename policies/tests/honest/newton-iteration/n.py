x = 1.0
while True:
    step = (x**2 - 2) / (2 * x)
    x -= step
    if abs(step) < 1e-12:
        break
print(x)
