"""Reading and writing what will run: job scripts and the configurations of experiments."""
