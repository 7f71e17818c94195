"""Parts of the page report."""
