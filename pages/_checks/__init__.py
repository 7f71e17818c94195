"""Parts of the page checks."""
