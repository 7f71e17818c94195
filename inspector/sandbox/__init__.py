"""The worker's sandbox: network, processes, files and privileges that it gives up."""
