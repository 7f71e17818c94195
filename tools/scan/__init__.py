"""Ask a running server all that a stranger can ask, and look for what no answer may tell.

`python -m tools.scan` starts a server of its own and scans it; `python -m tools.scan http://localhost:8501`
scans one that runs on this machine. It prints each leak and fails if there is any.
"""
