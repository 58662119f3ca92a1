"""Why a job ended as it did, from Slurm's records and its log. Pure: bytes and records in, answers out."""
