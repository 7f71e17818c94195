"""The parts of the Ray engine, each without a cluster."""

from __future__ import annotations

import asyncio
import pickle  # noqa: TID251 - to write what a hostile replica would
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pandas as pd
import pytest
from ray.exceptions import ActorDiedError, RayTaskError
from ray.serve.exceptions import BackPressureError, RequestCancelledError

from inspector.analyses.masked_lm.result import Mask
from inspector.errors import CancelledError, CheckpointError, SettingsError, WorkerError
from inspector.serving.encoding import decode, encode
from inspector.serving.engine import choice
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.ray import client as client_module
from inspector.serving.engine.ray import cluster, engine, replica
from inspector.serving.engine.ray.client import DEATHS, DIED, Client
from inspector.serving.engine.ray.engine import RayEngine
from inspector.serving.engine.ray.messages import (
    HEARD,
    AskReplica,
    Call,
    Cancel,
    JobUpdate,
    ReplicaQuestion,
    ReplicaStatus,
    Returned,
)
from inspector.serving.engine.wire import SAID, Answers, Failure, Partial
from inspector.settings import read_settings
from inspector.store.origins.on_disk import OUTSIDE
from tests.models import loops
from tests.serving.engine.engine_harness import WAIT, A, demo, eventually
from tests.serving.engine.engine_stand_ins import CATALOG, FUNCTIONS

FINISHED = encode(Answers.of(({"logits": 1},)))


class Pipe:
    """Keeps what a client sends to the web server."""

    def __init__(self) -> None:
        self.said: list[JobUpdate] = []

    def send_bytes(self, data: bytes) -> None:
        self.said.append(decode(data, *HEARD))

    @property
    def messages(self) -> list[Any]:
        return [decode(said.data, *SAID) for said in self.said]


class Handle:
    """Answers as Serve's handle would: what a list says, one entry a try."""

    def __init__(self, *tries: Any) -> None:
        self.tries = list(tries)
        self.models: list[str] = []

    def options(self, *, method_name: str, stream: bool, multiplexed_model_id: str) -> Handle:
        assert (method_name, stream) == ("ask", True)
        self.models.append(multiplexed_model_id)
        return self

    async def remote(self, question: bytes) -> AsyncIterator[Any]:
        for found in self.tries.pop(0):
            if isinstance(found, Exception):
                raise found
            if found is None:
                await asyncio.sleep(3600)
            yield found


def others() -> set[asyncio.Task[Any]]:
    """The tasks of this loop but for the one that asks."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def asked(handle: Handle) -> Pipe:
    pipe = Pipe()

    async def ask() -> None:
        made = Client(pipe, first_pause=0.001)  # type: ignore[arg-type]
        made.begin(handle)
        made.take(AskReplica("1", "ab", b""))
        await asyncio.gather(*others())

    loops.run(ask())
    return pipe


def test_a_full_queue_is_tried_until_there_is_a_place():
    full = [BackPressureError(1, 1)]
    pipe = asked(Handle(full, full, full, [FINISHED]))

    text = "The queue is full; waiting here: 1 request. Retrying"
    assert pipe.messages[:4] == [Progress(None, text)] * 3 + [decode(FINISHED, *SAID)]
    assert [said.taken for said in pipe.said[:4]] == [False, False, False, True]


def test_a_question_whose_replica_dies_is_asked_again_for_the_same_checkpoint():
    handle = Handle([encode(Progress(0.5, "half")), ActorDiedError()], [FINISHED])
    pipe = asked(handle)

    assert handle.models == ["ab", "ab"]
    assert [type(message) for message in pipe.messages[:3]] == [Progress, Progress, Answers]
    assert [said.taken for said in pipe.said[:3]] == [True, False, True]


def test_after_two_more_deaths_it_is_refused_in_one_sentence():
    handle = Handle(*[[ActorDiedError()]] * (DEATHS + 2))
    pipe = asked(handle)

    assert len(handle.models) == DEATHS + 1 == 3
    assert pipe.messages[-1] == Failure("WorkerError", DIED)


class Endless:
    """A response that says nothing until it is cancelled, and then what Serve's does."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def __aiter__(self) -> Endless:
        return self

    async def __anext__(self) -> bytes:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise RequestCancelledError("1") from None
        return b""


def test_a_question_that_was_stopped_is_not_asked_again():
    pipe, handle = Pipe(), Handle()
    responses = [Endless(), Endless()]
    handle.remote = lambda question: responses.pop(0)  # type: ignore[method-assign]
    first = responses[0]

    async def ask() -> None:
        made = Client(pipe)  # type: ignore[arg-type]
        made.begin(handle)
        made.take(AskReplica("1", "ab", b""))
        (task,) = others()
        while first in responses:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        made.take(Cancel("1"))
        await asyncio.gather(task, return_exceptions=True)

    loops.run(ask())
    assert first.cancelled
    assert (len(responses), handle.models, pipe.said) == (1, ["ab"], [])


def test_no_replica_in_time_is_one_sentence(monkeypatch):
    monkeypatch.setattr(client_module, "settings", lambda: read_settings({"INSPECTOR_SECONDS": "1"}))
    pipe = asked(Handle([None]))

    assert pipe.messages == [
        Failure(
            "WorkerError",
            "No replica of the cluster took this request within 1 seconds: try again later, or "
            "set INSPECTOR_RAY_MAX higher.",
        )
    ]


def test_an_error_in_the_replica_itself_shows_no_traceback():
    error = RayTaskError("ask", "Traceback: /secret/path", KeyError("/secret/path"))
    (message,) = asked(Handle([error])).messages

    assert message.error == "InspectorError"
    assert message.text.startswith("The work failed unexpectedly on the cluster. Try again")
    assert "secret" not in message.text
    assert "KeyError" not in message.text


class FakeLink:
    """The web server's end, and nobody at the other one."""

    made: list[FakeLink]

    def __init__(self, settings: Any, *, on_message: Any, on_end: Any) -> None:
        self.say: Callable[[Any], None] = on_message
        self.end = partial(on_end, self)
        self.sent: list[Any] = []
        self.returns: tuple[bytes, ...] = ()  # what the replicas do
        FakeLink.made.append(self)

    def send(self, message: Any) -> None:
        self.sent.append(message)
        if isinstance(message, Call):
            self.say(Returned(message.id, self.returns))

    def close(self, timeout: float) -> None:
        self.end("closed")


@pytest.fixture
def made(monkeypatch, tmp_path):
    FakeLink.made = []
    monkeypatch.setattr(engine, "Link", FakeLink)
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path), "INSPECTOR_ENGINE": "ray"})
    found = RayEngine(settings, spare=False, catalog=CATALOG)
    yield found
    found.close()


class Evil:
    def __reduce__(self) -> Any:
        return print, ("evil",)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (pickle.dumps(Evil()), "The cluster sent an invalid reply"),
        (b"", "The cluster sent an invalid reply"),
        (encode(Answers.of(())), "The worker sent an unexpected reply"),
        (encode(Answers.of((1, 2))), "The worker sent an unexpected reply"),
        (encode("done"), "The cluster sent an invalid reply"),
    ],
)
def test_what_is_no_result_refuses_one_question_and_runs_nothing(made, capsys, data, sentence):
    job, other = (made.run(A, "echo", value=value) for value in (1, 2))
    FakeLink.made[0].say(JobUpdate(job.id, data))

    with pytest.raises(WorkerError, match=sentence):
        job.result(WAIT)
    assert other.status == "waiting"
    assert "evil" not in capsys.readouterr().out


def test_asking_the_same_again_asks_the_cluster_once(made):
    first = made.run(A, "echo", value=1)
    assert made.run(A, "echo", value=1) is first
    FakeLink.made[0].say(JobUpdate(first.id, encode(Progress(0.5, "half"))))
    assert (first.status, first.progress) == ("running", Progress(0.5, "half"))
    FakeLink.made[0].say(JobUpdate(first.id, FINISHED))

    assert first.result(WAIT) == {"logits": 1}
    assert made.run(A, "echo", value=1) is first
    assert [type(message) for message in FakeLink.made[0].sent] == [AskReplica]


def test_a_replica_is_told_how_to_open_both_checkpoints(made):
    opened = made.open(demo("demo-bert")).result(WAIT)
    made.run(opened.fingerprint, "echo", other="cd" * 32)
    question: ReplicaQuestion = decode(FakeLink.made[0].sent[-1].question, ReplicaQuestion)

    assert question.references == ((opened.fingerprint, "demo-bert"), ("cd" * 32, f"upload:{'cd' * 32}"))


def test_a_replica_is_told_what_who_asks_calls_them(made):
    made.run(A, "echo", called=["ours", "theirs"], other="cd" * 32)
    assert decode(FakeLink.made[0].sent[-1].question, ReplicaQuestion).called == ("ours", "theirs")


def part(rows: int) -> bytes:
    return encode(Mask(rows, pd.DataFrame({"token": ["a"] * rows})))


def test_a_partial_answer_is_there_until_a_replica_dies_or_answers(made):
    job = made.run(A, "show_parts", rows=[], marker="")

    def say(message: Any, **taken: bool) -> None:
        FakeLink.made[0].say(JobUpdate(job.id, encode(message), **taken))

    say(Progress(None, "begun"))
    for number in (1, 2):
        say(Partial(number, part(number)))
    assert job.partial.position == 2
    say(Progress(None, "another one is asked"), taken=False)
    say(Progress(None, "begun"))
    assert job.partials == 0
    say(Partial(1, part(5)))
    assert job.partial.position == 5
    say(Answers((part(8),)))
    assert (job.result(WAIT).position, job.partial) == (8, None)


@pytest.mark.parametrize(
    "message", [Partial(2, part(1)), Partial(1, encode("of another class")), Partial(1, b"no message")]
)
def test_a_partial_answer_that_lies_refuses_one_question(made, message):
    job, other = (made.run(A, "show_parts", rows=[], marker=marker) for marker in "ab")
    FakeLink.made[0].say(JobUpdate(job.id, encode(message)))

    with pytest.raises(WorkerError, match=r"The cluster sent an invalid reply"):
        job.result(WAIT)
    assert other.status == "waiting"


def test_stopping_a_question_tells_the_cluster(made):
    job = made.run(A, "echo", value=1)
    job.cancel()
    FakeLink.made[0].say(JobUpdate(job.id, FINISHED))

    assert FakeLink.made[0].sent[-1] == Cancel(job.id)
    with pytest.raises(CancelledError):
        job.result(WAIT)


def test_a_look_at_the_cluster_says_why_no_replica_answers_and_starts_no_second_client_at_once(made, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])
    assert made.fault() == engine.NO_ANSWER  # the client has joined, and nobody returns anything
    FakeLink.made[0].end(cluster.NO_CLUSTER)
    assert [made.fault() for _ in range(3)] == [cluster.NO_CLUSTER] * 3
    assert len(FakeLink.made) == 1
    now[0] += engine.PAUSE_SECONDS + 1
    assert made.fault() == cluster.NO_CLUSTER  # until somebody answers
    assert len(FakeLink.made) == 2
    now[0] += 2.0
    FakeLink.made[1].returns = (encode(ReplicaStatus((), ())),)
    assert made.fault() == ""
    assert made.fault() == ""


def test_the_engine_that_a_look_has_started_is_the_one_that_pages_ask(monkeypatch, tmp_path):
    FakeLink.made = []
    monkeypatch.setattr(engine, "Link", FakeLink)
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path), "INSPECTOR_ENGINE": "ray"})
    assert choice.cluster_fault(settings) == engine.NO_ANSWER
    found = choice.start_engine(settings)
    try:
        assert found is choice.start_engine(settings)
        assert len(FakeLink.made) == 1
    finally:
        found.close()
    other = choice.start_engine(settings)
    try:
        assert other is not found  # which is closed
    finally:
        other.close()


def test_a_lost_cluster_is_one_sentence_and_the_next_question_connects_anew(made):
    job = made.run(A, "echo", value=1)
    FakeLink.made[0].end("The connection was lost.")

    with pytest.raises(WorkerError, match=r"^The connection was lost\.$"):
        job.result(WAIT)
    again = made.run(A, "echo", value=1)
    assert [link.sent for link in FakeLink.made[1:]] == [[AskReplica(again.id, A, again_question(again))]]


def again_question(job: Any) -> bytes:
    return encode(ReplicaQuestion(A, "echo", job.request.parameters, ((A, f"upload:{A}"),)))


def test_a_checkpoint_that_has_gone_is_opened_anew(made):
    job = made.run(A, "echo", value=1)
    FakeLink.made[0].say(JobUpdate(job.id, encode(Failure("CheckpointError", "It has gone: open it."))))

    with pytest.raises(CheckpointError, match="It has gone"):
        job.result(WAIT)
    assert made.run(A, "echo", value=1) is not job


@pytest.fixture
def node(monkeypatch, tmp_path):
    """A replica on the stand-ins, and no Serve around it."""

    async def hold(fingerprint: str) -> None:
        pass

    local = partial(LocalEngine, catalog=CATALOG, functions=FUNCTIONS, spare=False)
    monkeypatch.setattr(replica, "LocalEngine", local)
    monkeypatch.setattr(replica, "multiplexed", lambda engine, limit: hold)
    monkeypatch.setenv("INSPECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("INSPECTOR_ENGINE", "ray")
    found = replica.Replica({"INSPECTOR_WORKERS": "1", "INSPECTOR_HOME": "/elsewhere"})
    assert found.settings.home == tmp_path
    assert found.settings.workers == 1
    assert found.settings.engine == "local"
    yield found
    found.engine.close()


def question(verb: str, reference: str = "demo-a", **parameters: Any) -> bytes:
    return encode(ReplicaQuestion(A, verb, parameters, ((A, reference),)))


async def messages(node: Any, data: bytes) -> list[Any]:
    return [decode(message, *SAID) async for message in node.ask(data)]


def test_a_replica_opens_what_it_lacks_and_answers_with_progress(node, tmp_path):
    async def ask() -> None:
        seen = []
        async for data in node.ask(question("step", marker=str(tmp_path / "go"))):
            seen.append(decode(data, *SAID))
            if seen[-1] == Progress(0.5, "half way"):
                (tmp_path / "go").touch()
        assert Progress(0.5, "half way") in seen
        assert seen[-1] == Answers.of(("went on",))

    loops.run(ask())


def test_a_replica_passes_partial_answers_on(node, tmp_path):
    async def ask() -> None:
        seen = []
        async for data in node.ask(question("show_parts", rows=[3], marker=str(tmp_path / "go"))):
            seen.append(decode(data, *SAID))
            if isinstance(seen[-1], Partial):
                (tmp_path / "go").touch()
        (shown,) = (each for each in seen if isinstance(each, Partial))
        assert (shown.number, decode(shown.value, Mask).position) == (1, 3)
        (answer,) = (each for each in seen if isinstance(each, Answers))
        assert decode(answer.values[0], Mask).position == 3

    loops.run(ask())


def test_a_replica_answers_under_the_name_that_it_is_told(node):
    async def ask() -> None:
        asked = encode(ReplicaQuestion(A, "echo", {"value": 1}, ((A, "demo-a"),), ("ours",)))
        (*_, answer) = await messages(node, asked)
        assert decode(answer.values[0], Any)["name"] == "ours"

    loops.run(ask())


def test_a_folder_that_this_node_may_not_open_is_refused_though_it_is_known(node, tmp_path):
    known = tmp_path / "opened" / A
    known.mkdir(parents=True)
    (known / "manifest.json").touch()
    (folder := tmp_path / "folder").mkdir()

    async def ask() -> None:
        (*_, said) = await messages(node, question("echo", f"upload:{A}"))
        assert said != Failure("CheckpointError", replica.NOT_HERE)
        (said,) = await messages(node, question("step", f"path:{folder}"))
        assert (said.error, said.text) == ("CheckpointError", OUTSIDE)

    loops.run(ask())


def test_another_checkpoint_of_the_same_name_is_refused(node):
    async def ask() -> None:
        (*_, answer) = await messages(node, question("echo", "demo-b"))
        assert answer == Failure("CheckpointError", replica.OTHER)

    loops.run(ask())


def test_an_upload_that_no_node_shares_is_refused_with_what_to_set(node):
    async def ask() -> None:
        assert await messages(node, question("echo", f"upload:{A}")) == [Failure("CheckpointError", replica.NOT_HERE)]

    loops.run(ask())
    assert "INSPECTOR_STORE" in replica.NOT_HERE


def test_work_goes_on_while_anybody_waits_for_it_and_ends_with_the_last(node, tmp_path):
    data = question("step", marker=str(tmp_path / "go"))

    async def waiting() -> None:
        async for message in node.ask(data):
            if decode(message, *SAID) == Progress(0.5, "half way"):
                reached.release()

    async def ask() -> None:
        first, second = (asyncio.create_task(waiting()) for _ in range(2))
        for _ in range(2):
            await asyncio.wait_for(reached.acquire(), WAIT)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert any(worker.busy for worker in node.engine.workers())
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    reached = asyncio.Semaphore(0)
    loops.run(ask())
    eventually(lambda: not node.engine.workers())


def test_only_settings_that_replicas_use_travel():
    environ = {
        "INSPECTOR_HOME": "/home", "INSPECTOR_WORKERS": "2", "INSPECTOR_STORE": "s3://bucket",
        "INSPECTOR_PROXY_SECRET": "x", "INSPECTOR_PEOPLE": "ada@example.org",
        "INSPECTOR_ENGINE": "ray", "INSPECTOR_RAY_MAX": "3", "AWS_SECRET_ACCESS_KEY": "x",
        "PATH": "/bin",
    }  # fmt: skip
    assert set(cluster.for_replicas(environ)) == {
        "INSPECTOR_HOME", "INSPECTOR_WORKERS", "INSPECTOR_STORE",
    }  # fmt: skip


@pytest.mark.parametrize("address", ["ray://head:10001", "local", "http://head"])
def test_an_address_that_is_no_cluster_to_join_is_refused(address):
    with pytest.raises(SettingsError, match="RAY_ADDRESS"):
        cluster.address_of({"RAY_ADDRESS": address})
    assert cluster.address_of({}) == "auto"  # never an empty one, which starts a cluster


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"INSPECTOR_RAY_MIN": "3", "INSPECTOR_RAY_MAX": "2"}, "at least as high as the minimum"),
        ({"INSPECTOR_RAY_GPUS": "1.5"}, "a fraction of one GPU"),
        ({"INSPECTOR_RAY_GPUS": "-1"}, "a number from 0 to"),
        ({"INSPECTOR_RAY_QUEUE": "0"}, "a number from 1 to"),
        ({"INSPECTOR_ENGINE": "dask"}, "local, ray"),
    ],
)
def test_settings_of_the_cluster_are_checked(environ, words):
    with pytest.raises(SettingsError, match=words):
        read_settings(environ)


def test_a_fraction_of_a_gpu_is_a_setting():
    found = read_settings({"INSPECTOR_RAY_GPUS": "0.25", "INSPECTOR_RAY_MAX": "20"})
    assert (found.cluster.gpus, found.cluster.least, found.cluster.most) == (0.25, 1, 20)
