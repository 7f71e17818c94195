"""What do the static embeddings look like?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from inspector.analyses.embeddings.request import EmbeddingsRequest
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.vocabulary_map.component import find_tokens
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.view.blocks import Table
from pages._embeddings import inputs
from pages._embeddings import map as embedding_map
from pages._embeddings import tables as embedding_tables
from pages._ui import parts, session, table_files
from pages._ui.answer.rendering import PageView

checkpoint = session.opened()
parts.heading("embeddings", checkpoint)

choice, color, text, query = inputs.choose()
result: Embeddings = session.run(EmbeddingsRequest())
parts.warnings(result.warnings)
page = PageView.of(
    result,
    EmbeddingsRequest(),
    name=checkpoint.name,
    instead={(Table, "special-tokens"): lambda _: embedding_tables.special(checkpoint)},
)
page.headline()
progress_place = st.container()

steps = choice.steps()
first: Projection = session.run(steps[0])
hits = find_tokens(first.points, text)
found = hits.tokens["token_id"].tolist()
rows = set(first.points["token_id"])
selected = inputs.selected(found, rows, fingerprint=checkpoint.fingerprint)
asked = replace(query, token=f"id {selected}") if selected is not None else None
near: Embeddings | None = session.ask_if_ready(asked) if asked else None
# PCA stays on the screen, and can be used, while UMAP is computed; a map, while it is judged.
shown, projection, missing = steps[0], first, None
maps: dict[ProjectRequest, Projection] = {}
for step in steps[1:]:
    better: Projection | None = session.ask_if_ready(step)
    if better is None:
        missing = step
        break
    shown, projection = step, better
    maps[step] = better
points = embedding_map.judged(projection.points, result)

map_place, side = parts.main_row()
with map_place:
    embedding_map.show(
        projection,
        points,
        result,
        choice=shown,
        color=color,
        checkpoint=checkpoint,
        selected=selected,
        found=found,
        neighbors=near.neighbours["token_id"].tolist() if near else (),
    )
    mapped = PageView.of(projection, shown, name=checkpoint.name)
    mapped.beside()
    parts.warnings(projection.warnings)
    embedding_map.beside_ours(projection, maps.get(choice.ours))
    table_files.offer(points, name=f"{checkpoint.name}-{projection.method}", label="Whole map")
with side:
    embedding_tables.found(hits, checkpoint=checkpoint, selected=selected)
    st.header("Neighbors", anchor=False)
    near_place = st.empty()
    with near_place.container():
        embedding_tables.neighbors(near, waits=bool(asked), busy=missing is not None, checkpoint=checkpoint)
    embedding_tables.chosen(points, embedding_map.chosen(checkpoint, points), checkpoint=checkpoint)

page.below(first={"Special tokens": page.beside, "Norms": partial(mapped.tab, "Norms")})
file = f"{checkpoint.name.rpartition('/')[2]}-{choice.method}.csv"  # of org/name: no folder org has to be there
mapping = (choice.verb, *choice.to_argv(), "-o", file)
parts.elsewhere(checkpoint, asked or EmbeddingsRequest(), mapping)

with progress_place:  # last, so that everything else is there while a map is computed
    waited = session.ask(missing) if missing else None
if near is None and asked:
    with near_place.container():
        waited = session.ask(asked) or waited
if waited:
    st.rerun()
