"""What the verb `project` writes with -o."""

SAVED = "points"
