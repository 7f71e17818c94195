"""Run analyses in worker processes and return results, progress and errors."""
