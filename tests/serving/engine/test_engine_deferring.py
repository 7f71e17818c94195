"""What workers leave out of their imports: it is absent, it comes when asked for, and no number changes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inspector.serving.engine.wire import WorkerFunctions
from inspector.serving.trial import ROOT
from tests.serving.engine.forwards import digests

WITH = "from inspector.sandbox.deferring import defer_imports; defer_imports()"
MODEL = "import transformers.models.llama.modeling_llama"
LEFT_OUT = ("torch._dynamo.utils", "torch._inductor", "torch.distributed.tensor", "sympy", "scipy.optimize")


def python(*lines: str) -> str:
    """What a new process prints."""
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_a_worker_imports_leaves_them_out_and_other_processes_have_them():
    found = f"import sys; print([name for name in {LEFT_OUT} if name in sys.modules])"
    modules = [f"import {name}" for name in WorkerFunctions().modules]
    assert python(WITH, *modules, MODEL, found) == "[]"
    assert python(MODEL, found) == str(list(LEFT_OUT))


TOLD = """
from transformers.utils import is_scipy_available, is_torch_distributed_available
from transformers.loss import loss_for_object_detection as loss
assert is_scipy_available() and is_torch_distributed_available()  # only some of its own modules are told otherwise
assert not loss.is_scipy_available()
"""
LEAVES_IT_OUT = (
    TOLD,
    "assert not hasattr(torch._dynamo, '__wrapped__')",
    "torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))]).step()",
)
BRINGS_IT = (
    "compiled = torch.compile(lambda x: 2 * x + 1, backend='eager'); assert compiled(torch.ones(1)) == 3",
    "from torch._dynamo.eval_frame import OptimizedModule",
    "from torch._dynamo import *; reset",
    "assert not hasattr(torch._dynamo, 'no_such_thing')",
)
EACH_IN_A_FORK = """
import os, sys, torch
for asked in {asked!r}:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, asked
        continue
    assert 'torch._dynamo.utils' not in sys.modules
    exec(asked, {{'torch': torch}})
    assert ('torch._dynamo.utils' in sys.modules) == {comes}
    assert not {comes} or torch._dynamo.disable.__module__ == 'torch._dynamo.decorators'
    os._exit(0)
"""


@pytest.mark.parametrize(("asked", "comes"), [(LEAVES_IT_OUT, False), (BRINGS_IT, True)])
def test_the_compiler_comes_when_it_is_asked_for_and_else_not(asked, comes):
    python(WITH, MODEL, EACH_IN_A_FORK.format(asked=asked, comes=comes))


def test_models_compute_the_same_to_the_bit():
    plain = json.loads(python(MODEL, "import json, sys, torch", "torch.set_num_threads(1)",
                              "assert 'torch._dynamo.utils' in sys.modules",
                              "from tests.serving.engine.forwards import digests",
                              "print(json.dumps(digests()))"))  # fmt: skip
    assert digests() == plain
    assert len(set(plain.values())) > 20
