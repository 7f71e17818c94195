"""UMAP in our own loops: compiled for the processor, which is as quick as an accelerator there."""
