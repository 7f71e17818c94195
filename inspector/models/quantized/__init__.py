"""Quantized weights: tell them by name and shape, and dequantize them."""
