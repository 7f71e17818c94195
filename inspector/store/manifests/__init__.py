"""What the store knows of a checkpoint: manifests, written as JSON and believed only once they are checked."""
