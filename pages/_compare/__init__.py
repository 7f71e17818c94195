"""Parts of the page compare."""
