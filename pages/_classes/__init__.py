"""Parts of the page classes."""
