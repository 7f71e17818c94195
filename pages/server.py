"""What may this server use, what are its workers doing, and what is in its store?"""

from __future__ import annotations

from inspector.serving.engine.report import confinement_of, server_limits
from inspector.settings import settings
from inspector.store.keeping.quota import account
from pages._server import parts as server_parts
from pages._ui import parts, session

parts.title("Server", "What may this server use, what are its workers doing, and what is in its store?")
engine = session.engine()
found = server_limits(settings(), confinement_of(engine))
held = account(settings())

server_parts.draw_administration()
work, sandbox = parts.main_row()
with work:
    server_parts.draw_workers(engine)
    server_parts.draw_use(held)
with sandbox:
    server_parts.draw_sandbox(found)

limits, store, ended = parts.in_tabs("Limits", "Store", "Crashed workers")
if limits.open:
    with limits:
        server_parts.draw_limits(found)
if store.open:
    with store:
        server_parts.draw_store(held)
if ended.open:
    with ended:
        server_parts.draw_endings(engine)
