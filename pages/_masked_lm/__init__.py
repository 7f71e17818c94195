"""Parts of the page masked_lm."""
