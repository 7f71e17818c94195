"""`python -m benchmarks`: run every benchmark and print its table."""

from benchmarks.pages import main

main()
