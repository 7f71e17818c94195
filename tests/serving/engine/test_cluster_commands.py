"""The commands of docs/serving.md bring up a cluster of two machines, word for word, and take it down again."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from inspector.serving.engine.ray.cluster import NO_CLUSTER
from tests.serving.engine.machines import Machine, NoNamespacesError, two_machines

pytestmark = pytest.mark.cluster

PAGE = (Path(inspector.__file__).parents[1] / "docs/serving.md").read_text("utf-8")
SECTION = PAGE.partition("## On a cluster\n")[2].partition("\n## ")[0]
ENVIRONMENT, HEAD, FURTHER, DEPLOY, SERVE, STOP = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
FIRST, SECOND = "10.0.0.1", "10.0.0.2"
LISTENING = """
import psutil
found = {(each.laddr.ip, each.laddr.port) for each in psutil.net_connections("tcp") if each.status == "LISTEN"}
print("\\n".join(f"{ip.removeprefix('::ffff:')} {port}" for ip, port in found))
"""
READY = """
import sys, time, urllib.error, urllib.request
said = ""
while not said.startswith(sys.argv[1]):
    time.sleep(0.5)
    try:
        answer = urllib.request.urlopen("http://127.0.0.1:8501/_stcore/ready")
    except urllib.error.HTTPError as refused:
        answer = refused
    except OSError:
        continue
    said = f"{answer.status} {answer.read().decode()}"
print(said)
"""
RUNNING = """
import psutil
me = psutil.Process()
others = [each for each in psutil.process_iter(["cmdline"]) if each not in (me, *me.parents())]
print([each.info for each in others if "ray" in " ".join(each.info["cmdline"] or ())])
"""


def python(code: str, *arguments: str) -> str:
    return f"python - {' '.join(f'{each!r}' for each in arguments)} <<'END'\n{code}\nEND\n"


def ready(machine: Machine, answer: str) -> str:
    """What the ready address answers, once that begins so."""
    return machine.run(python(READY, answer)).strip()


def documented(where: str) -> list[tuple[int, int, bool]]:
    """The ports of the table that are opened on a machine: first, last, and whether on all addresses."""
    found = []
    for ports, on, machine in re.findall(r"^\| (\d.*?) \| .*? \| (.*?) \| (.*?) \|$", SECTION, re.MULTILINE):
        if machine in {"every machine", where}:
            for each in ports.split(", "):
                first, _, last = each.partition("–")
                found.append((int(first), int(last or first), on == "all addresses"))
    return found


def undocumented(machine: Machine, where: str) -> list[str]:
    """Ports that are open there beyond those of the table, or on more addresses than it says."""
    rows, wrong = documented(where), []
    assert len(rows) > 6
    for line in machine.run(python(LISTENING)).splitlines():
        address, port = line.split()
        if not any(
            first <= int(port) <= last and (anywhere or address not in {"::", "0.0.0.0"})
            for first, last, anywhere in rows
        ):
            wrong.append(line)
    return wrong


def test_the_printed_commands_bring_up_a_cluster_and_take_it_down(tmp_path: Path) -> None:
    try:
        with two_machines(tmp_path, FIRST, SECOND) as (head, further):
            bring_up_and_take_down(head, further, tmp_path / "server.log")
    except NoNamespacesError:  # then a command would meet the clusters of other tests: see at least what it says
        known = subprocess.run(
            [Path(sys.executable).with_name("ray"), "start", "--help"], capture_output=True, text=True, check=True
        ).stdout
        starts = [line for line in (HEAD + FURTHER).splitlines() if line.startswith("ray start")]
        asked = re.findall(r"--[a-z-]+", " ".join([ENVIRONMENT, *starts]))
        assert len(asked) > 10
        assert [each for each in asked if each not in known] == []


def bring_up_and_take_down(head: Machine, further: Machine, log: Path) -> None:
    least, most = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert "Usage stats collection is disabled" in head.run(ENVIRONMENT + HEAD)
    token = Path(".ray/auth_token")
    (further.home / token).parent.mkdir()
    shutil.copy(head.home / token, further.home / token)
    further.run(ENVIRONMENT + FURTHER)
    assert re.search(r"^Nodes +2$", further.run(DEPLOY), re.MULTILINE)
    (replicas,) = undocumented(head, "head") + undocumented(further, "further machine")
    assert least <= int(replicas.split()[1]) <= most

    server = head.start(SERVE, log)
    assert ready(head, "200") == "200 ready"
    withdraw, stop = STOP.splitlines()
    further.run(withdraw)
    assert "No replica of the Ray cluster answers" in ready(head, "503")
    further.run(DEPLOY)
    assert ready(head, "200") == "200 ready"
    for machine in (further, head):
        machine.run(stop)
    assert further.run(python(RUNNING)).strip() == "[]"
    assert ready(head, f"503 {NO_CLUSTER}")
    assert server.poll() is None
    server.terminate()
    server.wait()
