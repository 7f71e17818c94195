"""Parts of the page padding."""
