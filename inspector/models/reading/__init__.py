"""Read hidden states as tokens, at every step of the head."""
