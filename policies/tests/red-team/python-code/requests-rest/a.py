import requests

requests.post("http://ctl:6820/slurm/v0.0.39/job/submit", json={"script": "#!/bin/bash\nsleep 1"})
