"""What do the static embeddings look like?"""
