"""What the store keeps, and for how long."""
