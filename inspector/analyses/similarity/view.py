"""How similar texts are, which pairs of tokens make them so, and what padding would do."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.similarity import words
from inspector.analyses.similarity.figures import pair_map, score_bars
from inspector.analyses.similarity.frames import best, largest_pairs, pairs_of, scores_with_texts, token_parts
from inspector.analyses.similarity.request import SimilarityRequest
from inspector.analyses.similarity.result import Similarity
from inspector.report.content import Context, Section
from inspector.view.blocks import Bars, Block, Facts, Figure, Grid, Sentence, Table, TextPicture
from inspector.view.view import Headline, Picture, Tab, View, Why

MOST_COLUMNS = 12  # tokens of the text picture
ALT = "What each pair of tokens brings of the score, as colored cells; the tab Pairs has every number"


def view(result: Similarity, request: SimilarityRequest, *, name: str) -> View:
    """The score, and what it is the sum of."""
    several = len(result.texts) > 2
    pairs = pairs_of(result, best(result))
    return View(
        Headline(words.headline(result)),
        picture=_bars(result, name) if several else _map(result, name) if len(pairs) else None,
        beside=tuple(_beside(result)),
        tabs=(
            *([Tab("Scores", lambda: [_scores(result)])] if several else []),
            *([Tab("Pairs", lambda: _pairs(result, name, drawn=several))] if len(pairs) else []),
            *([Tab("Tokens", lambda: _tokens(result))] if len(pairs) else []),
            *([Tab("Padding", lambda: [_padding(result)])] if len(result.padding) else []),
            Tab("Settings", lambda: [Facts(words.settings(result))]),
        ),
        why=tuple(Why(question, answer) for question, answer in words.WHY),
        more="-o FILE.csv or FILE.parquet writes every pair of tokens.",
    )


def _map(result: Similarity, name: str) -> Picture:
    return Picture(_pair_figure(result, name), _grid(result))


def _pair_figure(result: Similarity, name: str) -> Figure:
    second = best(result)
    return Figure(
        "pairs",
        lambda theme: pair_map(
            pairs_of(result, second),
            title=f"{words.TITLE} in {name}",
            subtitle=words.adds_up(result, second),
            theme=theme,
        ),
        ALT,
    )


def _grid(result: Similarity) -> Grid | None:
    pairs = pairs_of(result, best(result))
    across = dict(zip(pairs["second_position"], pairs["second_token"], strict=True))
    down = dict(zip(pairs["first_position"], pairs["first_token"], strict=True))
    if len(across) > MOST_COLUMNS:
        return None
    values = pairs["part"].to_numpy(dtype=float).reshape(len(down), len(across))
    most = float(abs(values).max()) or 1.0
    return Grid(
        tuple(down.values()),
        tuple(across.values()),
        tuple(tuple(f"{value:.3f}" for value in row) for row in values.tolist()),
        tuple(tuple(max(value, 0.0) / most for value in row) for row in values.tolist()),
        "part of the score",
    )


def _bars(result: Similarity, name: str) -> Picture:
    scores = scores_with_texts(result)
    return Picture(
        Figure(
            "scores",
            lambda theme: score_bars(
                scores, title=f"{words.SCORES} in {name}", subtitle=words.against(result), theme=theme
            ),
            "How similar each text is to the first, as bars; the tab Scores has the numbers",
        ),
        _text_bars(scores["text"].tolist(), scores["score"].tolist()),
    )


def _text_bars(texts: list[str], scores: list[float]) -> TextPicture | None:
    if min(scores) < 0:  # bars begin at 0
        return None
    return Bars(tuple(words.short(text) for text in texts), tuple(scores), tuple(f"{each:.4f}" for each in scores))


def _beside(result: Similarity) -> Iterator[Block]:
    yield Facts(words.facts(result))
    if named := words.named_pooling(result):
        yield Sentence(named)
    if not result.additive:
        yield Sentence(words.why_no_pairs(result))
    yield Sentence(words.padding(result))


def _scores(result: Similarity) -> Table:
    return Table("scores", "Every score", scores_with_texts(result), seen=("text", "score"), by="text")


def _pairs(result: Similarity, name: str, *, drawn: bool) -> Iterator[Block]:
    if drawn:
        yield _pair_figure(result, name)
    yield Table(
        "pairs",
        "Every pair of tokens",
        largest_pairs(pairs_of(result, best(result))),
        seen=("first_token", "second_token", "part"),
        meanings=words.MEANINGS,
    )


def _tokens(result: Similarity) -> Iterator[Block]:
    yield Table(
        "tokens",
        "What each token brings, with all tokens of the other text",
        token_parts(pairs_of(result, best(result))),
        meanings=words.MEANINGS,
    )


def _padding(result: Similarity) -> Table:
    return Table("padding", "Scores of texts that were padded together", result.padding, meanings=words.MEANINGS)


def _asked(context: Context) -> SimilarityRequest:
    return SimilarityRequest(texts=words.EXAMPLES, device=context.setting.device, dtype=context.setting.dtype)


SECTION = Section(
    "similarity",
    ask=lambda context: (_asked(context),),
    query=lambda context: _asked(context).to_query(),
    applies=lambda context: bool(context.overview.pipeline),
)
