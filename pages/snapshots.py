"""What changes over training steps?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.snapshots.frames import OverSteps, check_frame, follow, tie_frame
from pages._snapshots import inputs
from pages._snapshots.asking import ask_all
from pages._snapshots.runs import choose
from pages._ui import parts, session
from pages._ui.answer.rendering import PageView

checkpoint = session.opened()
parts.heading("snapshots", checkpoint)

line = st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="small")
run = choose(checkpoint, line)
with line:
    choice = inputs.ask()
quantity = choice.quantity
series = None
if quantity in inputs.VERDICTS:
    answers = ask_all(run, inputs.VERDICTS[quantity])
    frame = tie_frame(answers) if quantity == "ties" else check_frame(answers)
else:
    answers = ask_all(run, choice.vitals)
    series = follow(answers, against=choice.series.against)
    parts.warnings(series.warnings)
    frame = series.table(quantity)
if frame.empty or (series and not series.holds(quantity)):
    inputs.say_nothing()
found = OverSteps(quantity, frame, series, inputs.counted(answers, run), choice.evenly)
PageView.of(found, choice.vitals, name=run.name).show(
    {"Open a snapshot": partial(inputs.open_one, run)}, opened_by={"snapshot": "Open a snapshot"}
)
inputs.elsewhere(run, choice)
