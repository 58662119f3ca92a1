"""Readers of what programs do, by language: shell and Python."""
