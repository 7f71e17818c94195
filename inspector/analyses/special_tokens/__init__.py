"""Which special tokens are there, and what ends a generated text?"""
