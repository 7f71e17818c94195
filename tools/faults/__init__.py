"""Faults, provoked for real on this machine, and what came of them.

`python -m tools.faults` runs every one of them against servers and store processes of its own, on
loopback, prints a table and writes it to docs/faults.md. `python -m tools.faults NAME …` runs some.
"""
