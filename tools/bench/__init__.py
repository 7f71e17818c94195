"""Timings of the app, printed and never asserted."""
