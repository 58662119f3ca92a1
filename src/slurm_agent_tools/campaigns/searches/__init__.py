"""Searches over many parameters: one way a file, which `design` asks for what to try next."""
