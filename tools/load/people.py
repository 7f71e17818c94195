"""What people do: a mix of all pages, uploads, and changes faster than answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from inspector.catalog import CATALOG
from tools.load.contents import PageElement, read
from tools.scan.sessions import Session, session

PAGES = tuple(dict.fromkeys(analysis.slug for analysis in CATALOG.values()))
FIELDS = {"lens": "Text", "masked_lm": "Text in the link"}  # that hold a text of one's own
TYPED = tuple(FIELDS)
WORDS = ("paris", "london", "river", "water", "king", "war", "tree", "house", "law", "music", "month", "bird")
SENTENCES = ("the {} is near the capital of [MASK].", "a {} that is made of [MASK].")
PLAIN = ("the {} is near the capital of", "a {} that is made of")  # for models without a mask
FAST = 4  # texts typed one after the other without waiting


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that is opened with certain inputs."""

    checkpoint: str  # demo-bert, demo-gpt2, or the name of an upload
    page: str
    text: str = ""

    def query(self, reference: str) -> str:
        """Its link."""
        return urlencode({"checkpoint": reference} | ({"text": self.text} if self.text else {}))


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What a visit was answered with, and after how long."""

    visit: Visit
    seconds: float
    said: list[PageElement]


@dataclass
class PageTree:
    """The elements of a page, by their place."""

    elements: dict[tuple[int, ...], PageElement] = field(default_factory=dict)
    page: str = ""  # hash of the page that runs
    running: bool = False
    fields: dict[str, str] = field(default_factory=dict)  # label of a text field -> its id

    def look(self, data: bytes, where: str) -> None:
        """Take what the server sent, where it is a message for the page."""
        if where.startswith(("page", "typing")):
            self.take(data)

    def take(self, data: bytes) -> None:
        """Take one message."""
        message = ForwardMsg()
        message.ParseFromString(data)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.elements.clear()
            self.fields.clear()
            self.running = True
        elif kind == "navigation":  # only this names the page that a bare name stood for
            self.page = message.navigation.page_script_hash
        elif kind == "script_finished":
            self.running = False
        elif kind == "delta":
            self._change(message)

    def _change(self, message: ForwardMsg) -> None:
        place = tuple(message.metadata.delta_path)
        for below in [path for path in self.elements if path[: len(place)] == place]:
            del self.elements[below]
        if message.delta.WhichOneof("type") != "new_element":
            return
        element = message.delta.new_element
        if element.WhichOneof("type") == "text_area":
            self.fields[element.text_area.label] = element.text_area.id
        said = read(element)
        if said is not None and place[0] == 0:  # the page; the sidebar lists what others upload
            self.elements[place] = said

    def said(self) -> list[PageElement]:
        """From top to bottom."""
        return [self.elements[place] for place in sorted(self.elements)]


class Person:
    """A session that keeps what its page says."""

    def __init__(self, link: Session, tree: PageTree) -> None:
        self._link, self._tree = link, tree
        self._come = False  # True: this is not the first page

    def open(self, visit: Visit, reference: str) -> PageAnswer:
        """Open a page by its link and wait for all of it."""
        begin = time.perf_counter()
        request = BackMsg()
        request.rerun_script.page_name = visit.page
        request.rerun_script.query_string = visit.query(reference)
        request.rerun_script.is_history_navigation = self._come  # the link decides, as at first
        self._come = True
        self._link.send(request, f"page {visit.page}")
        self._link.take_until_finished(f"page {visit.page}")
        return PageAnswer(visit, time.perf_counter() - begin, self._tree.said())

    def upload(self, name: str, content: bytes) -> None:
        """Upload an archive and have it opened."""
        self._come = True
        self._link.visit("overview")
        self._link.upload("overview", name, content)

    def type_fast(self, visits: list[Visit]) -> PageAnswer:
        """Type one text after the other into the page's field, without waiting for an answer."""
        begin = time.perf_counter()
        typed_in = self._tree.fields[FIELDS[visits[0].page]]
        for visit in visits:
            request = BackMsg()
            request.rerun_script.page_script_hash = self._tree.page
            state = request.rerun_script.widget_states.widgets.add()
            state.id = typed_in
            state.string_value = visit.text
            self._link.send(request, "typing")
        while not self._answered(visits[-1].text):
            try:
                self._link.take_until_finished("typing")
            except TimeoutError:
                said = " | ".join(map(str, self._tree.said()[-3:]))
                raise TimeoutError(f"“{visits[-1].text}” was not answered; last: {said}") from None
        return PageAnswer(visits[-1], time.perf_counter() - begin, self._tree.said())

    def _answered(self, text: str) -> bool:
        """Whether the page has run to its end with a text: its last lines name it."""
        if self._tree.running:
            return False
        return any(said.kind == "code" and text in said.value for said in self._tree.said())


@contextmanager
def person(url: str) -> Iterator[Person]:
    """A person who has just come."""
    tree = PageTree()
    with session(url, tree.look) as link:
        yield Person(link, tree)


def sentence(number: int, *, masked: bool) -> str:
    """A text that only one person asks."""
    kinds = SENTENCES if masked else PLAIN
    return kinds[number // len(WORDS) % len(kinds)].format(WORDS[number % len(WORDS)])
