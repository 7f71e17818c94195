"""What a command prints, and the files that it writes."""
