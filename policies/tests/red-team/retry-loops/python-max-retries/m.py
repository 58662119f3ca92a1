from core import run_experiment

MAX_RETRIES = 3
count = 0
while count < MAX_RETRIES:
    try:
        run_experiment()
        break
    except Exception:
        count += 1
