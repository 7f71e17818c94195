"""How plausible is each token in its place?"""
