"""Parts of the page embeddings."""
