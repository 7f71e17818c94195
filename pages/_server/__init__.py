"""Parts of the page server."""
