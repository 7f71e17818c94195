"""Views: what answers consist of."""
