"""Parts of the page snapshots."""
