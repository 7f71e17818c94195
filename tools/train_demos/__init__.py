"""Train the bundled demo checkpoints, and write their cards."""
