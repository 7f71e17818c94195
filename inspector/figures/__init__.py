"""Frames in, Plotly figures out.

Show them with `st.plotly_chart(figure, theme=None)`: Streamlit's own theme would repaint them.
"""

from inspector.figures.classes import class_tree
from inspector.figures.compare import change_bars, change_heatmap, changed_outside
from inspector.figures.contrast import contrast_scatter, differing_words
from inspector.figures.geometry import geometry_plot
from inspector.figures.heads import span_heatmap
from inspector.figures.health import score_histogram
from inspector.figures.lens import token_heatmap
from inspector.figures.lens_lines import rung_lines
from inspector.figures.norms import norms_histogram, pad_norm_curve
from inspector.figures.padding import gradient_bars
from inspector.figures.parameters import parameter_icicle
from inspector.figures.plausibility import plausibility_strip, surprisal_colors
from inspector.figures.predictions import topk_bars
from inspector.figures.projection import projection_figure
from inspector.figures.ranks import rank_lines
from inspector.figures.sharing import sharing_graph
from inspector.figures.snapshots import has_steps, step_lines, verdict_grid
from inspector.figures.theme import DARK, LIGHT, Theme, get_theme
from inspector.figures.training import schedule_lines

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "change_bars",
    "change_heatmap",
    "changed_outside",
    "class_tree",
    "contrast_scatter",
    "differing_words",
    "geometry_plot",
    "get_theme",
    "gradient_bars",
    "has_steps",
    "norms_histogram",
    "pad_norm_curve",
    "parameter_icicle",
    "plausibility_strip",
    "projection_figure",
    "rank_lines",
    "rung_lines",
    "schedule_lines",
    "score_histogram",
    "sharing_graph",
    "span_heatmap",
    "step_lines",
    "surprisal_colors",
    "token_heatmap",
    "topk_bars",
    "verdict_grid",
]
