"""Many people at once: a mix of all pages, and every answer compared with a lone person's.

`python -m tools.load` starts a server of its own on this machine, asks it everything once in
a single session, then lets 1, 5, 20 and 50 sessions ask at once, and prints a table.
`--minutes 60` keeps five sessions busy for an hour and watches the memory. The sessions speak
Streamlit's websocket themselves, so that fifty of them cost little; browsers are for the other
tests.
"""
