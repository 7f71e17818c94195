"""`python -m inspector`: the command line."""

from inspector.cli import main

main()
