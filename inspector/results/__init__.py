"""Results that the infrastructure itself gives; those of a question are in its room.

Results are frozen, and hold plain values and data frames, never tensors. Field names are those of
the command line's JSON, which is `inspector.results.plain.to_json(result)`. Token text is always
the visible form (a space is shown as "␣" at the front of a piece where the tokenizer marks it).
"""
