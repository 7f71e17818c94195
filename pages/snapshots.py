"""What changes over training steps?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.snapshots import words
from inspector.analyses.snapshots.figures import step_lines, verdict_grid
from inspector.analyses.snapshots.frames import check_frame, follow, tie_frame
from pages._snapshots import inputs
from pages._snapshots.asking import ask_all
from pages._snapshots.runs import choose
from pages._ui import parts, session, table_files

checkpoint = session.opened()
parts.heading("snapshots", checkpoint)

run = choose(checkpoint)
choice = inputs.ask(run)
quantity = choice.quantity
if quantity in inputs.VERDICTS:
    answers = ask_all(run, inputs.VERDICTS[quantity])
    frame = tie_frame(answers) if quantity == "ties" else check_frame(answers)
    if frame.empty:
        inputs.say_nothing()
    parts.chart(
        verdict_grid(
            inputs.cells(frame, quantity),
            title=words.figure_title(quantity, run.name, None),
            subtitle=inputs.counted(answers, run),
            theme=session.theme(),
        ),
        alt="A verdict for each snapshot; the table below lists them",
        key="verdicts",
    )
else:
    answers = ask_all(run, choice.vitals)
    series = follow(answers, against=choice.series.against)
    parts.warnings(series.warnings)
    if not series.holds(quantity):
        inputs.say_nothing()
    lines, frame = series.lines(quantity), series.table(quantity)
    parts.chart(
        step_lines(
            lines,
            measure=words.MEASURES[quantity],
            evenly=choice.evenly,
            title=words.figure_title(quantity, run.name, series),
            subtitle=inputs.counted(answers, run),
            theme=session.theme(),
        ),
        alt=f"{words.MEASURES[quantity]} over training steps; the table below lists the numbers",
        key="lines",
    )
numbers, why, one = parts.in_tabs(
    "Table", "What it shows", "Open a snapshot", opened_by={"snapshot": "Open a snapshot"}
)
if numbers.open:
    with numbers:
        frame = frame.drop(columns="place", errors="ignore")
        parts.table(frame, alt="The numbers of the figure", height=360 if len(frame) > 10 else None)
        table_files.offer(frame, name=f"{run.name}-{quantity}")
if why.open:
    with why:
        st.markdown(words.READS[quantity])
if one.open:
    with one:
        inputs.open_one(run)
inputs.elsewhere(run, choice)
