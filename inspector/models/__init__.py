"""Build models safely, place them on a device, and read their tokens and tensors."""
