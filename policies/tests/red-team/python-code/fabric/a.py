from fabric import Connection

Connection("login01").run("sbatch next.sh")
