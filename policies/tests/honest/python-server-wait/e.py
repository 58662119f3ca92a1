import time

import requests

for _ in range(60):
    try:
        if requests.get("http://localhost:8000/health", timeout=1).ok:
            break
    except requests.ConnectionError:
        time.sleep(1)
else:
    raise SystemExit("no server")
