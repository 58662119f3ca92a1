import urllib.request

from tenacity import retry, stop_after_attempt, wait_fixed


@retry(stop=stop_after_attempt(3), wait=wait_fixed(5))
def fetch(url):
    return urllib.request.urlopen(url, timeout=20).read()


print(len(fetch("https://example.org/a.csv")))
