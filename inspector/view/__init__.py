"""What an answer consists of, arranged once: pages, reports, notebooks and the terminal show the same view."""
