"""Masked texts: read them, run the masked-LM head on the masked positions alone."""
