"""Parts of the page training."""
