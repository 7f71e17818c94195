"""How plausible is every token in its own place?"""
