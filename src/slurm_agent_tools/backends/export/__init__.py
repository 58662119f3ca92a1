"""The same job for other schedulers: PBS Pro, Kubernetes, SkyPilot and a plain shell."""
