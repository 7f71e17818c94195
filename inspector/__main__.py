"""`python -m inspector`: the command line."""

from inspector.cli.start import main

main()
