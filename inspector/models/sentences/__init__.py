"""Sentence encoders: what sentence-transformers makes of hidden states, and which pairs of tokens a score is of."""
