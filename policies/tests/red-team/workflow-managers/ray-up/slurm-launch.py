import subprocess

text = "#!/bin/bash\n"
with open("t.sub", "w") as file:
    file.write(text)
subprocess.Popen(["sbatch", "t.sub"])
