"""UMAP in our own loops: compiled for the processor, or in batches on an accelerator."""
