"""Adapters: what their files change of a model, and in which numbers."""
