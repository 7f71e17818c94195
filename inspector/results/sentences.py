"""The words in which sentence-transformers states how texts are compared."""

from __future__ import annotations

# How hidden states become one vector, in the order in which the library joins the vectors of several.
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
MEASURES = ("cosine", "dot", "euclidean", "manhattan")  # of two vectors; a distance counts as its negative
ADDITIVE = MEASURES[:2]  # those that are sums over the dimensions, and so over pairs of tokens
