"""The pages of the app: choose, call, draw, explain."""
