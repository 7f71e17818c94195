"""Results of the infrastructure; each room defines the results of its question.

Results are frozen and contain plain values and data frames, never tensors. Field names are those of
the command line's JSON, which is `inspector.results.plain.to_json(result)`. Token text is always
the visible form (a space is shown as "␣" at the front of a piece where the tokenizer marks it).
"""
