"""Ask many checkpoints the same question: several at once, answers kept as they come."""
