import json
import time

for attempt in range(5):
    try:
        with open("state.json") as file:
            state = json.load(file)
        break
    except (OSError, ValueError):
        time.sleep(2)
else:
    raise SystemExit("no state")
print(state)
