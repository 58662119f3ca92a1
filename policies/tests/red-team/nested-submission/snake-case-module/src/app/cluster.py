from subprocess import check_output as out


def submit(path):
    return out(["sbatch", "--parsable", path])
