"""What does the model predict for a mask?"""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from inspector import figures
from inspector.figures.text import percent_text
from inspector.results import Prediction
from pages._shared import inputs, parts, session
from pages._shared.words import literal

session.guard()
checkpoint = session.opened()
parts.heading("masked_lm", checkpoint)

inputs.require_head("masked_lm", verb="predict")
text = inputs.text(checkpoint, slug="masked_lm", masks=True)
with st.expander("Options", icon=":material/tune:"), st.container(horizontal=True):
    k = int(st.number_input("Tokens a mask", 1, 1000, 10, key="k", bind="query-params"))
    targets = st.text_input("Rank only these tokens", key="targets", bind="query-params",
                            placeholder="russia, france", help="Comma-separated")  # fmt: skip
    device, dtype = inputs.placement()
wanted = tuple(target.strip() for target in targets.split(",") if target.strip())
prediction: Prediction = session.run("predict", text=text, k=k, targets=wanted, device=device,
                                     dtype=dtype)  # fmt: skip
parts.warnings(prediction.warnings)

with st.container(horizontal=True):
    st.metric("Device", prediction.device)
    st.metric("Dtype", prediction.dtype)
    st.metric("Forward pass", f"{prediction.milliseconds:.1f} ms",
              help="One pass through the model, which was loaded before.")  # fmt: skip
    st.metric("Tokens", len(prediction.tokens))
    st.metric("Masks", len(prediction.masks))

for column, mask in zip(parts.grid(len(prediction.masks), wide=2), prediction.masks, strict=False):
    with column:
        best = mask.predictions.iloc[0]
        number = f"mask at position {mask.position}"
        parts.chart(
            figures.topk_bars(
                mask.predictions.head(30),
                title=f"{checkpoint.name}, {number}",
                subtitle="every other mask left open" if len(prediction.masks) > 1 else "",
                theme=session.theme(),
            ),
            alt=f"Likeliest tokens for the {number}, as bars; the table below holds the same",
            key=f"bars {mask.position}",
        )
        with st.expander(f"Table: {literal(best['token'])} first, "
                         f"{percent_text(best['probability'])}"):  # fmt: skip
            parts.table(mask.predictions, alt=f"Likeliest tokens for the {number}")
            parts.download(mask.predictions, name=f"{checkpoint.name}-mask-{mask.position}")

if len(prediction.masks) > 1 and prediction.joint:
    st.subheader("All masks together", anchor=False)
    st.caption("Filled from left to right, each given the ones before, by a beam of five: the best "
               "answers alone need not fit together.")  # fmt: skip
    joint = [
        {"tokens": " · ".join(way.tokens), "log_probability": way.log_probability,
         "probability": math.exp(way.log_probability)}
        for way in prediction.joint
    ]  # fmt: skip
    parts.table(pd.DataFrame(joint), alt="Likeliest joint answers")

with st.expander("How it is computed"):
    st.markdown(
        "The text goes through the encoder once. At each mask the head turns the hidden state "
        "into one logit a token (dense layer, activation, LayerNorm, product with the word "
        "embeddings, bias), and a softmax over the **whole** vocabulary makes probabilities, also "
        "where only some tokens are ranked. The model saw these tokens:"
    )
    st.code(" ".join(prediction.tokens), language=None, wrap_lines=True)
ranked = [f"--targets={','.join(wanted)}"] if wanted else []
options = (*ranked, *inputs.placement_options(device, dtype))
parts.elsewhere(checkpoint, ("predict", f"--text={text}", "-k", str(k), *options))
