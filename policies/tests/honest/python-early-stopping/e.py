from engine import evaluate, train_epoch

best, wait = 1e9, 0
for epoch in range(100):
    try:
        train_epoch(epoch)
        loss = evaluate()
    except KeyboardInterrupt:
        print("stopped by hand")
        break
    if loss < best:
        best, wait = loss, 0
    else:
        wait += 1
        if wait > 5:
            break
