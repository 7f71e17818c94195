"""Was an adapter really merged into its base model?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from inspector.analyses.merge_proof import words
from inspector.analyses.merge_proof.figures import SIGNS, verdict_map, worst_first
from inspector.analyses.merge_proof.result import MergeProof
from inspector.text import literal
from pages._merge import inputs
from pages._ui import parts, session, table_files
from pages._ui.words import listed, source

checkpoint = session.opened()
parts.heading("merge", checkpoint)

chosen = inputs.choose(checkpoint)
proof: MergeProof = session.run(chosen.request, beside=(chosen.adapter, chosen.merged))
parts.warnings(proof.warnings)
show = {"ok": st.success, "note": st.info}.get(words.judged(proof), st.error)
show(literal(words.headline(proof)))
picture, side = parts.main_row()
with picture:
    heatmap = parts.drawn(
        lambda theme: verdict_map(proof.tensors, title=words.title(proof), subtitle=words.subtitle(proof), theme=theme)
    )
    with st.container(height=parts.frame_height(heatmap), border=False):
        parts.chart(
            heatmap,
            alt="What became of each kind of tensor in each layer; the tab Tensors has every tensor",
            key="verdicts",
        )
with side:
    parts.facts(words.facts(proof))
tensors, signs, why = parts.in_tabs("Tensors", "Signs", "How it is proven")
if tensors.open:
    with tensors:
        frame = worst_first(proof.tensors)
        parts.table(frame, alt="Every tensor, with its verdict")
        table_files.offer(frame, name=f"{proof.merged_name}-merge", label="Tensors")
if signs.open:
    with signs:
        st.markdown(listed(words.signs(SIGNS)))
if why.open:
    with why:
        for question, answer in words.WHY:
            st.markdown(f"**{literal(question)}** {literal(answer)}")
named = replace(chosen.request, adapter=source(chosen.adapter), merged=source(chosen.merged))
parts.elsewhere(checkpoint, named)
