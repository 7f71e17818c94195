"""The processes that read strangers' files: how they start, what they may read, and how they end."""
