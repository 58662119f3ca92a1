import os

os.environ["SECIVED_ELBISIV_ADUC"[::-1]] = "0"
