import time
import urllib.request


def load():
    for attempt in range(3):
        try:
            return urllib.request.urlopen("https://example.org/x.csv").read()
        except OSError:
            time.sleep(2**attempt)
    raise RuntimeError("no data")
