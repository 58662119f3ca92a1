import utils.jobs

utils.jobs.go()
