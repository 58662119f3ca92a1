import subprocess

import click


@click.group()
def main():
    """Train and test; submit it with `sbatch run.sh`."""


@main.command(help="run it under sbatch run.sh")
@click.option("--epochs", default=1)
def train(epochs):
    subprocess.run(["python", "engine.py", f"--epochs={epochs}"], check=True)


main()
