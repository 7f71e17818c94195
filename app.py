"""The app: its server, and the script that Streamlit runs for every person.

Streamlit imports this file once for `app`, the server, whose requests pass through `inspector.serving`
first. Then it runs the same file as a script, each time somebody opens or changes a page.
"""

from pathlib import Path

import streamlit as st

if __name__ == "__main__":
    from pages._ui import frame

    try:
        frame.draw()
    finally:  # a page may have ended the script
        import pandas  # noqa: F401  # half a second that the first page with a table need not take
else:
    import os
    from functools import partial

    from starlette.middleware import Middleware

    from inspector.errors import SettingsError
    from inspector.sandbox.confinement import missing_here
    from inspector.sandbox.limits import raise_open_files
    from inspector.serving.access_control import AccessControl
    from inspector.serving.access_token import access_token
    from inspector.serving.headers import Headers, failure
    from inspector.serving.log import start_log
    from inspector.serving.metrics import start_metrics
    from inspector.serving.people import check_sign_in, sender_of
    from inspector.serving.place import check_confinement, served_settings
    from inspector.serving.readiness import Readiness, ReadyAddress, check_start
    from inspector.serving.settings import serving
    from inspector.serving.start import name_pages_in_the_frame, starting, take_turns
    from inspector.serving.storing.arriving import Arriving
    from inspector.serving.uploads import Uploads
    from inspector.serving.websocket_filter import WebsocketFilter, send_more_than_is_read
    from inspector.settings import settings

    raise_open_files()
    os.umask(0o077)  # what the server stores is for no other user of this machine
    SCRIPT = str(Path(__file__).resolve())
    try:
        start_log(serving().log)
        check_sign_in(serving())
        check_confinement(settings(), missing_here)
        check_start(settings())
        readiness = Readiness(served_settings())
        start_metrics(serving().metrics, settings(), lambda: not readiness.look())
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    name_pages_in_the_frame()
    take_turns()
    send_more_than_is_read()
    app = st.App(
        SCRIPT,
        lifespan=partial(starting, readiness=readiness),
        middleware=[
            Middleware(Headers),
            Middleware(ReadyAddress, readiness=readiness),
            Middleware(AccessControl, settings=serving(), token=access_token()),
            Middleware(WebsocketFilter, script=SCRIPT, settings=serving()),
            Middleware(
                Uploads,
                begin=partial(Arriving, settings=settings()),
                most_nbytes=settings().upload_nbytes,
                owner_of=partial(sender_of, settings=serving(), shared=bool(settings().store)),
            ),
        ],
        exception_handlers={Exception: failure},
    )
