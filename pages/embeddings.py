"""What do the static embeddings look like?"""

from __future__ import annotations

import streamlit as st

from inspector import figures
from inspector.results import Embeddings, Projection
from pages._shared import embedding_map, parts, session
from pages._shared.embedding_words import explain_padding, explain_special
from pages._shared.words import literal

session.guard()
checkpoint = session.opened()
parts.heading("embeddings", checkpoint)

choice = embedding_map.choose()
query = embedding_map.choose_token()
# Of a token that there is not, the page says so, and shows the rest.
asked = session.ask("embeddings", **query.parameters()) if query.token else None
result: Embeddings = asked or session.run("embeddings", **query.parameters(token=None))
parts.warnings(result.warnings)

map_place, neighbours_place = st.columns([7, 3], gap="medium")
with neighbours_place:
    st.subheader("Neighbours", anchor=False)
    if result.query is None:
        st.caption(
            ":material/ads_click: Click a point of the map or type a token: its nearest rows are "
            "listed here, measured exactly in the original space."
        )
    else:
        st.caption(
            f"of **{literal(result.query)}** (id {result.query_id}) in all {result.columns:,} "
            f"dimensions, by {result.metric}{' distance' * (result.metric == 'euclidean')}"
        )
        parts.table(result.neighbours, alt=f"Nearest tokens by {result.metric}")
        parts.download(result.neighbours, name=f"{checkpoint.name}-neighbours-{result.query_id}")

st.subheader("Padding and special tokens", anchor=False)
left, right = st.columns([2, 3], gap="large")
with left:
    with st.container(horizontal=True):
        st.metric("Smallest norm", f"{result.norms.min:.3f}")
        st.metric("Median norm", f"{result.norms.median:.3f}")
        st.metric("Largest norm", f"{result.norms.max:.3f}")
    parts.table(result.special, alt="Special tokens with the norms of their rows")
with right:
    for question, answer in (explain_padding(result), explain_special(result)):
        with st.expander(question, expanded=True):
            st.markdown(answer)
norms_place = st.container()

st.subheader("Under-trained tokens", anchor=False)
st.caption(
    "Rows that point to where rows lie that training never used, by the cosine to their mean "
    "(Land & Bartolo 2024, *Fishing for Magikarp*); without such rows, by a norm far below the "
    "median. A high score is a suspicion, no proof."
)
if result.undertrained.empty:
    st.info("There is no ordinary token to judge: the vocabulary is too small.")
else:
    parts.table(result.undertrained, height=300, alt="Tokens whose rows look never trained")
    parts.download(result.undertrained, name=f"{checkpoint.name}-undertrained")
mapping = ("project", *choice.options(name=checkpoint.name))
parts.elsewhere(checkpoint, ("embeddings", *query.options()), mapping)

with map_place:  # last, so that everything else is there while a map is computed
    projection: Projection = session.run("project", **choice.parameters())
    parts.warnings(projection.warnings)
    embedding_map.draw(projection, result, checkpoint=checkpoint)
    parts.download(projection.points, name=f"{checkpoint.name}-{projection.method}")
with norms_place:
    norms = figures.norms_histogram(
        projection.points,
        title=f"How long the rows of {checkpoint.name} are",
        subtitle=f"{projection.rows:,} rows, special tokens written out",
        theme=session.theme(),
    )
    parts.chart(norms, alt="Histogram of the rows' norms, padding and special tokens marked")
    embedding_map.draw_padding_history(checkpoint)
