"""Why are these two sentences similar?"""

from __future__ import annotations

from inspector.analyses.similarity.result import Similarity
from pages._similarity import inputs
from pages._ui import parts, session
from pages._ui.answer.rendering import PageView

checkpoint = session.opened()
parts.heading("similarity", checkpoint)

request = inputs.choose(checkpoint)
result: Similarity = session.run(request)
parts.warnings(result.warnings)
PageView.of(result, request, name=checkpoint.name).show()
parts.elsewhere(checkpoint, request)
