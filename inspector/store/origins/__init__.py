"""Where checkpoints come from: folders, archives, the hub, training runs."""
