"""What developers and operators run: benchmarks, load, faults, fuzzing, the demos' training."""
