"""Checkpoints on disk: staged, content-addressed, and read without running anything in them."""
