"""Parts of the page lens."""
