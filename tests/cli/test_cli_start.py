"""The command line imports what the verb that was typed needs, and runs it as the whole one does."""

from __future__ import annotations

import subprocess
import sys

from inspector.catalog import CATALOG
from inspector.cli.main import app

SLOW = {"jinja2", "numpy", "pandas", "plotly", "ray", "torch"}
CODE = """
import sys
sys.argv[1:] = {typed!r}
import atexit
atexit.register(lambda: print("loaded:", *sorted(set(sys.modules) & {slow!r})))
from inspector.cli.start import main
main()
"""


def run(*typed: str) -> subprocess.CompletedProcess[str]:
    code = CODE.format(typed=list(typed), slow=SLOW)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_verb_loads_no_slow_library_before_it_is_asked():
    for verb in ("overview", "check", "sharing", "training"):
        done = run(verb, "no-such-thing")
        assert done.returncode == 2
        assert "no-such-thing" in done.stderr
        assert done.stdout.split("loaded:")[1].split() == []


def test_every_other_first_word_meets_the_whole_command_line():
    listed = run("--help").stdout
    verbs = [each.name or each.callback.__name__ for each in app.registered_commands if each.callback]
    assert {*CATALOG, "report", "serve"} <= set(verbs)
    assert all(verb in listed for verb in verbs)
    unknown = run("overveiw", "demo-bert")
    assert unknown.returncode == 2
    assert "No such command 'overveiw'" in unknown.stderr
