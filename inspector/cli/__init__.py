"""The command line: every question as a verb, as a table for people or as JSON for machines."""
