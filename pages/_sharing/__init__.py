"""Parts of the page sharing."""
