"""Open a checkpoint: uploaded, in a folder of this server, from the hub, or by a link."""
