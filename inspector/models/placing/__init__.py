"""Where a model runs: on one device, spread over several, or streamed from its files."""
