"""Reports: what the pages show, as one file that can be sent, trusted and reproduced."""
