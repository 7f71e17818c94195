"""Reports: what the pages show, as one file to send; each number can be checked and computed again."""
