"""What does the model predict for a mask?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.overview.request import OverviewRequest
from pages._masked_lm import answers as masked_answers
from pages._masked_lm import contrast as masked_contrast
from pages._masked_lm import history as masked_history
from pages._masked_lm import inputs as masked_inputs
from pages._masked_lm import plausibility as masked_plausibility
from pages._masked_lm import versus as masked_versus
from pages._masked_lm import view as masked_view
from pages._ui import inputs, parts, session

checkpoint = session.opened()
parts.heading("masked_lm", checkpoint)

if session.run(OverviewRequest()).is_causal:
    masked_plausibility.draw_causal(checkpoint)
    st.stop()
inputs.require_head("masked_lm", PredictRequest(text=""))
# Each part has its place, so that what is replaced while typing is never drawn twice.
reading_place, editor_place, fields_place = st.container(), st.container(), st.container()
answer_place, body, device_place = st.container(), st.container(), st.container()
with reading_place:
    sentence = masked_inputs.read(checkpoint)
with fields_place:
    request, view = masked_inputs.choose(sentence)
    judging = masked_plausibility.choose(request) if view == "Plausibility" else None
prediction = session.ask_if_ready(request) if sentence.masks else None
plausibility = session.ask_if_ready(judging) if judging and sentence.pieces else None
with editor_place:
    masked_view.draw_editor(sentence, prediction, plausibility)
drawn = (prediction is None, plausibility is None)

if not sentence.text.strip():
    with body:
        st.info("Type a text or choose an example.", icon=":material/edit:")
        if view == "History":
            masked_history.draw()
    st.stop()
commands = []
with answer_place:
    if sentence.masks or not sentence.pieces or not inputs.mask_token():  # or it says why not
        prediction = session.run(request)
        parts.warnings(prediction.warnings)
        masked_history.note(checkpoint, sentence, prediction)
        commands.append(request)
with body:
    match view:
        case "Plausibility" if judging:
            plausibility = masked_plausibility.draw(checkpoint, judging)
            commands.append(judging)
        case "Two sentences":
            commands.append(masked_contrast.draw(checkpoint, prediction, request))
        case "Two checkpoints":
            masked_versus.draw(checkpoint, sentence, request, prediction)
        case "History":
            masked_history.draw()
        case _ if prediction is None:
            masked_view.invite()
        case _:
            masked_answers.draw(checkpoint, request, prediction)
with device_place:
    if prediction is not None:
        masked_view.draw_device(prediction, checkpoint)
    if any(commands):
        parts.elsewhere(checkpoint, *filter(None, commands))
if drawn != (prediction is None, plausibility is None):
    # The editor was drawn before an answer came that belongs on its tokens.
    masked_view.redraw((view, request))
