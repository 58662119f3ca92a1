"""Where jobs can run: facts about each backend, the choice between them, and what a backend needs to run a job."""
