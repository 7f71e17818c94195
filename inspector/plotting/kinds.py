"""How each kind of token is drawn: a shape as well as a color."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KindStyle:
    """Marker of one kind of token."""

    symbol: str  # Plotly's name, and the vocabulary map's
    size: float  # diameter in pixels
    opacity: float
    labels: int  # up to so many tokens of this kind have their text written beside them


# In drawing order: later ones lie on top. The keys are `results.KINDS`.
KIND_STYLES = {
    "word": KindStyle("circle", 3.5, 0.6, 0),
    "subword": KindStyle("circle-open", 4.5, 0.7, 0),
    "byte": KindStyle("square", 6, 0.9, 0),
    "no token": KindStyle("x", 7, 0.9, 0),
    "unused": KindStyle("triangle-up", 6, 0.85, 0),
    "special": KindStyle("diamond", 11, 1.0, 24),
    "padding": KindStyle("star", 16, 1.0, 4),
}
