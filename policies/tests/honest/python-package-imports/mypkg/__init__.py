"""A package."""

__version__ = "0.1"
