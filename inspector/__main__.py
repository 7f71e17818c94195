"""`python -m inspector`: the command line."""

from inspector.cli.main import main

main()
