"""How the numbers of one tensor are distributed."""
