"""The embedding matrix by rows: go over it in blocks, name its rows."""
