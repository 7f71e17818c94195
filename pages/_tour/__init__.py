"""Parts of the page tour."""
