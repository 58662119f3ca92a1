import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

session = requests.Session()
session.mount("https://", HTTPAdapter(max_retries=Retry(total=5, backoff_factor=1)))
rows = session.get("https://example.org/rows.json", timeout=30).json()
print(len(rows))
