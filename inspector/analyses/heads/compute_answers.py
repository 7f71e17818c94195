"""Read the outputs of the heads that label: sentences, texts, tokens and choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch

from inspector.analyses.heads.result import Choices, FilledTokens, Labels, NextSentence, TokenLabels
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.inputs import HeadInput, HeadRun
from inspector.models.running import Loaded

OUTSIDE = "O"  # label of tokens that are in no span
ONE_NUMBER = "regression"


def next_sentence(run: HeadRun) -> NextSentence:
    """Read the two scores of a next-sentence head: label 0 says that the second text follows."""
    logits = run.fields["logits"][0]
    chances = logits.softmax(dim=0).tolist()
    return NextSentence(chances[0], chances[1], (float(logits[0]), float(logits[1])))


def label_text(loaded: Loaded, run: HeadRun) -> Labels:
    """Read the scores of a text's labels, by what the config says that they are.

    One label, or problem_type "regression": numbers as they are; "multi_label_classification": a
    sigmoid each; else a softmax. The same as transformers' pipeline, but for a single label
    without a problem_type, which its loss trains as a regression and the pipeline puts through a
    sigmoid.
    """
    logits = run.fields["logits"][0]
    kind = _label_kind(loaded.model.config, len(logits))
    scores = {"softmax": logits.softmax(dim=0), "sigmoid": logits.sigmoid(), ONE_NUMBER: logits}[kind]
    names: Any = loaded.model.config.id2label or {}
    frame = pd.DataFrame(
        {
            "label": [str(names.get(index, f"LABEL_{index}")) for index in range(len(logits))],
            "label_id": range(len(logits)),
            "score": scores.numpy(),
            "logit": logits.numpy(),
        }
    )
    if kind != ONE_NUMBER:
        frame = frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    return Labels(kind, frame)


def _label_kind(config: Any, count: int) -> str:
    stated = getattr(config, "problem_type", None)
    if stated == "multi_label_classification":
        return "sigmoid"
    return ONE_NUMBER if stated == "regression" or (count == 1 and stated is None) else "softmax"


def rate_choices(run: HeadRun, texts: Sequence[str]) -> Choices:
    """Read one score a choice; a softmax over the choices makes probabilities."""
    logits = run.fields["logits"][0]
    frame = pd.DataFrame(
        {
            "choice": range(len(texts)),
            "text": list(texts),
            "probability": logits.softmax(dim=0).numpy(),
            "logit": logits.numpy(),
        }
    )
    return Choices(int(logits.argmax()), frame)


def fill_tokens(checkpoint: StagedCheckpoint, given: HeadInput, run: HeadRun) -> FilledTokens:
    """Read the most likely token at every position of a masked language model."""
    tokens = checkpoint.require_tokens()
    ids = given.encodings[0].ids
    # Perceiver answers for every position that it could read.
    best = run.fields["logits"][0, : len(ids)].softmax(dim=1).max(dim=1)
    mask = tokens.role("mask")[1]
    return FilledTokens(
        pd.DataFrame(
            {
                "position": range(len(ids)),
                "token": [tokens.visible(index) for index in ids],
                "token_id": ids,
                "prediction": [tokens.visible(index) for index in best.indices.tolist()],
                "prediction_id": best.indices.numpy(),
                "probability": best.values.numpy(),
                "is_mask": [index == mask for index in ids],
            }
        )
    )


def label_tokens(
    checkpoint: StagedCheckpoint, loaded: Loaded, given: HeadInput, run: HeadRun, text: str
) -> TokenLabels:
    """Read one label a token, and join neighbors into spans.

    Spans are those of transformers' pipeline with aggregation_strategy "simple": neighbors with
    one tag join, "B-" begins anew, the score is the mean, and the label "O" makes none.
    """
    encoding = given.encodings[0]
    best = run.fields["logits"][0].softmax(dim=1).max(dim=1)
    names: Any = loaded.model.config.id2label or {}
    tokens = checkpoint.require_tokens()
    rows = [
        {
            "position": place,
            "token": tokens.visible(encoding.ids[place]),
            "label": str(names.get(label, f"LABEL_{label}")),
            "score": score,
            "start": encoding.offsets[place][0],
            "end": encoding.offsets[place][1],
        }
        for place, (label, score) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        if not encoding.special_tokens_mask[place]
    ]
    spans = [_span(group, text) for group in _grouped(rows)]
    spans = [span for span in spans if span["label"] != OUTSIDE]
    return TokenLabels(
        pd.DataFrame(spans, columns=["label", "score", "start", "end", "text"]),
        pd.DataFrame(rows, columns=["position", "token", "label", "score", "start", "end"]),
    )


def _grouped(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: list[list[dict[str, Any]]] = []
    for row in rows:
        begins = row["label"].startswith("B-")
        if groups and not begins and _tag(groups[-1][-1]["label"]) == _tag(row["label"]):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _tag(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label


def _span(group: list[dict[str, Any]], text: str) -> dict[str, Any]:
    start, end = group[0]["start"], group[-1]["end"]
    scores = torch.tensor([row["score"] for row in group])
    return {
        "label": group[0]["label"].split("-", 1)[-1],
        "score": float(scores.mean()),
        "start": start,
        "end": end,
        "text": text[start:end],
    }
