"""What a class does to any weights, found by running it without them."""
