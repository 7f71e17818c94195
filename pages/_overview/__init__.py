"""Parts of the page overview."""
