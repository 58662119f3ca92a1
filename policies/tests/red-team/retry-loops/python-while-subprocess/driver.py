import subprocess

while subprocess.call(["python", "train.py"]) != 0:
    print("again")
