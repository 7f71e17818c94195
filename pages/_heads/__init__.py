"""Parts of the page heads."""
