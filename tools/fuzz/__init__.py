"""Hostile input by the million: every reader of uploads, with bytes and structures made up."""
