"""Which base is this: is a checkpoint the same as another one, made from it, or unrelated?"""
