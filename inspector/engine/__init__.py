"""Run analyses in worker processes and hand back result, progress and errors."""
