"""Parts of the page merge."""
