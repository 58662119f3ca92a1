from work import run_simulation

for attempt in range(3):
    try:
        run_simulation()
    except Exception as error:
        print(attempt, error)
    else:
        break
else:
    raise SystemExit("failed three times")
