"""Scripts that run in the browser, and what mounts them."""
