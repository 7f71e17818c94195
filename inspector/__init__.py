"""Checkpoint Inspector: open a transformer checkpoint and see what is really inside it."""

__version__ = "0.1.0"
