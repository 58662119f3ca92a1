"""Job scripts: their directives and options, the programs that they run, and the request in numbers."""
