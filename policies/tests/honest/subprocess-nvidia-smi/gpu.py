import subprocess

out = subprocess.check_output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], text=True)
print(out)
q = subprocess.run("squeue --me -h | wc -l", shell=True, capture_output=True, text=True)
print(q.stdout)
