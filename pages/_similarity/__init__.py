"""The page Sentence similarity."""
