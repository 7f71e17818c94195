"""Readers of strangers' files: safetensors, PyTorch archives, pickles, JSON."""
