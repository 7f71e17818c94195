"""The questions, one room each: pure functions from a checkpoint to a frozen result.

Each function takes `(checkpoint, *, progress, ...)`; `progress(fraction, text)` may be called at
any time, with a fraction in 0..1 or None while nobody can tell.
"""
