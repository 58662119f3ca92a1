"""Programs in job scripts: a reader for each language, and what is asked of what it read."""
