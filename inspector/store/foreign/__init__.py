"""What other programs save: their names, settings and layouts, read as the model's own."""
