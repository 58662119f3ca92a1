import glob
from concurrent.futures import ProcessPoolExecutor, as_completed


def process(path):
    return path, len(open(path).read())


with ProcessPoolExecutor(8) as pool:
    jobs = [pool.submit(process, path) for path in glob.glob("in/*.txt")]
    for job in as_completed(jobs):
        try:
            print(*job.result())
        except OSError as error:
            print("failed", error)
