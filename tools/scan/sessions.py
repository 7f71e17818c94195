"""A browser's side of Streamlit's websocket, without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

ANSWER_SECONDS = 180.0  # for a model that has to be loaded first, on a busy machine
TYPE = "application/octet-stream"
BOUNDARY = "----scan-upload"

Look = Callable[[bytes, str], None]


class Session:
    """One person's session.

    Args:
        url: The server's.
        connection: Its websocket.
        token: The XSRF token that the server gave.
        cookies: All that the browser has.
        look: Called with every message's bytes and the request that it answers.
    """

    def __init__(self, url: str, connection: ClientConnection, *, token: str, cookies: str, look: Look) -> None:
        self._url, self._connection, self._token, self._look = url, connection, token, look
        self._cookies = cookies
        self._uploads, self._last = 0, 0.0  # the last: when something was sent or came
        self.id = ""
        self.uploader = ""  # the file input's id, once a page has drawn it
        self.tables, self.styles = 0, ""  # how many were drawn, and all HTML of our own
        self.boxes: list[str] = []  # errors that nobody expected
        self.errors: list[str] = []  # sentences of error boxes, in the order of arrival

    def visit(self, page: str, query: str = "") -> None:
        """Open a page and take all that it draws."""
        request = BackMsg()
        request.rerun_script.page_name = page
        request.rerun_script.query_string = query
        self.send(request, f"page {page}?{query[:60]}")
        self.take_until_finished(f"page {page}?{query[:60]}")

    def send(self, request: BackMsg, where: str) -> None:
        """Send a request; what it is called goes with its answers."""
        self._where, self._last = where, time.monotonic()
        self._connection.send(request.SerializeToString())

    def upload(self, page: str, name: str, content: bytes) -> None:
        """Put a file into the page's file input and run the page."""
        self._uploads += 1
        file = f"scan-{self._uploads}"
        place = f"/_stcore/upload_file/{self.id}/{file}"
        self._look(self._put(place, name, content), f"upload of {name[:40]}")
        request = BackMsg()
        request.rerun_script.page_name = page
        state = request.rerun_script.widget_states.widgets.add()
        state.id = self.uploader
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.name, info.size, info.file_id = name, len(content), file
        info.file_urls.file_id = file
        info.file_urls.upload_url = info.file_urls.delete_url = place
        self.send(request, f"page after the upload of {name[:40]}")
        self.take_until_finished(f"page after the upload of {name[:40]}")

    def _put(self, place: str, name: str, content: bytes) -> bytes:
        quoted = name.replace('"', "%22").replace("\r", "").replace("\n", "")
        body = (
            (
                f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="{quoted}"\r\n'
                f"Content-Type: {TYPE}\r\n\r\n"
            ).encode()
            + content
            + f"\r\n--{BOUNDARY}--\r\n".encode()
        )
        parts = urlsplit(self._url)
        connection = HTTPConnection(parts.hostname or "", parts.port)
        headers = {
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
            "X-Xsrftoken": self._token,
            "Cookie": self._cookies,
        }
        connection.request("PUT", place, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 204:
            raise RuntimeError(f"The upload was answered with {answer.status}: {text[:100]!r}")
        return str(answer.headers).encode() + text

    def take_until_finished(self, where: str) -> None:
        """Take messages until the script that was asked for has run to its end."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            data = self._connection.recv(timeout=ANSWER_SECONDS)
            assert isinstance(data, bytes)
            self._look(data, where)
            message = ForwardMsg()
            message.ParseFromString(data)
            self._read(message)
            if message.WhichOneof("type") == "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    continue
                return
        raise TimeoutError(f"The script did not finish: {where}")

    def _read(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.id = message.new_session.initialize.session_id
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            if element.WhichOneof("type") == "file_uploader":
                self.uploader = element.file_uploader.id
            elif element.WhichOneof("type") == "alert":
                self.errors.append(element.alert.body)
            elif element.WhichOneof("type") == "exception":
                self.boxes.append(element.exception.message)
            elif element.WhichOneof("type") == "dataframe":
                self.tables += 1
            elif element.WhichOneof("type") == "html":
                self.styles += element.html.body

    def drain(self, seconds: float) -> bool:
        """Take what comes until nothing has for some time; False if the server closed the connection."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                data = self._connection.recv(timeout=max(0.0, self._last + seconds - time.monotonic()))
                self._last = time.monotonic()
                self._look(data if isinstance(data, bytes) else data.encode(), self._where)
        except TimeoutError:
            return True
        except ConnectionClosed as closed:
            self._look(str(closed).encode(), self._where)
            return False

    def send_raw(self, data: Any, where: str) -> None:
        """Send what is no request of Streamlit's."""
        self._where, self._last = where, time.monotonic()
        self._connection.send(data)


@contextmanager
def session(url: str, look: Look, cookie: str = "") -> Iterator[Session]:
    """Open a session as a browser does that may have a cookie."""
    parts = urlsplit(url)
    web = HTTPConnection(parts.hostname or "", parts.port)
    web.request("GET", "/_stcore/health")
    answer = web.getresponse()
    answer.read()
    token = (answer.headers["Set-Cookie"] or "").partition(";")[0].partition("=")[2]
    web.close()
    cookies = "; ".join(filter(None, (f"_streamlit_xsrf={token}", cookie)))
    with connect(
        f"ws://{parts.netloc}/_stcore/stream",
        origin=url,  # pyright: ignore[reportArgumentType]
        subprotocols=["streamlit", token],  # pyright: ignore[reportArgumentType]
        additional_headers={"Cookie": cookies},
        max_size=None,
    ) as connection:
        if connection.response:
            look(str(connection.response.headers).encode(), "the websocket's handshake")
        yield Session(url, connection, token=token, cookies=cookies, look=look)
