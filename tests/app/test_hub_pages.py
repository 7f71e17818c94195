"""A model of the hub on pages, from its headers alone: on a hub of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from inspector.store.origins.hub_headers import FIRST
from pages._ui import running
from tests.app.looking import said
from tests.hub import COMMIT, Hub, plain, serving, shard

Open = Callable[..., AppTest]
MODEL = "org/model"
LINK = f"hub:{MODEL}@{COMMIT}"
HEADER = [f"bytes=0-{FIRST[1] - 1}"]
FETCH = "Fetch 65.6 MB"
SECOND = "org/second"
AGREED = (f"hub:{MODEL}", f"hub:{MODEL}@v1", f"hub:{SECOND}")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, _store: None) -> Iterator[Hub]:
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 16_000, "n_embd": 2_048,
        "n_layer": 0, "n_head": 2, "n_positions": 8,
    }  # fmt: skip
    tensors = {
        "transformer.wte.weight": (16_000, 2_048), "transformer.wpe.weight": (8, 2_048),
        "transformer.ln_f.weight": (2_048,), "transformer.ln_f.bias": (2_048,),
    }  # fmt: skip
    files = {"config.json": plain(json.dumps(config)), "model.safetensors": shard(tensors)}
    with serving(files) as hub, pytest.MonkeyPatch.context() as patch:
        for name, value in hub.environment.items():
            patch.setenv(name, value)
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
        running.started.clear()
        yield hub
        running.engine().close()
        running.started.clear()


def ranges(hub: Hub, model: str = MODEL) -> list[str]:
    """What the CDN was asked for of a model's weights."""
    return [line.rpartition(" ")[2] for line in hub.asked if line.startswith(f"{model} ")]


@pytest.mark.parametrize("slug", ["overview", "sharing", "classes", "training"])
def test_headers_alone_answer(open_app: Open, hub: Hub, slug: str) -> None:
    app = open_app(slug, checkpoint=f"hub:{MODEL}", agreed=f"hub:{MODEL}")
    assert not app.exception
    assert not app.error, [each.value for each in app.error]
    assert app.selectbox(key="picked").value == LINK
    assert "Headers only: 65.6 MB not fetched." in said(app)
    assert [each.label for each in app.button if "Fetch" in each.label] == [FETCH]
    assert ranges(hub) == HEADER
    assert hub.authorized == []


@pytest.mark.parametrize(
    ("slug", "query"),
    [
        ("embeddings", {}),
        ("lens", {"text": "1 2"}),
        ("checks", {}),
        ("compare", {"other": f"hub:{SECOND}", "values": "sample"}),
    ],
)
def test_what_takes_numbers_says_how_much_it_is_and_fetches_nothing_by_itself(
    open_app: Open, hub: Hub, slug: str, query: dict[str, str]
) -> None:
    app = open_app(slug, checkpoint=f"hub:{MODEL}", agreed=AGREED, **query)
    assert not app.exception
    assert not app.error, [each.value for each in app.error]
    (told,) = (each.value for each in app.info if "numbers" in each.value)
    assert "65" in told
    assert "still on the hub" in told
    several = [f"{FETCH} of {name}" for name in (r"org\/model", r"org\/second")]
    labels = [each.label for each in app.main.button if "Fetch" in each.label]
    assert labels == (several if "other" in query else [FETCH])
    assert ranges(hub) == HEADER


def test_two_models_of_the_hub_are_compared_by_their_headers(open_app: Open, hub: Hub) -> None:
    app = open_app("compare", checkpoint=f"hub:{MODEL}", agreed=AGREED, other=f"hub:{MODEL}@v1", values="none")
    assert not app.exception
    assert not app.error, [each.value for each in app.error]
    assert "no numbers were read" in said(app)
    assert ranges(hub) == HEADER


def test_the_click_fetches_the_model_whole(open_app: Open, hub: Hub) -> None:
    other = "org/other"
    link = LINK.replace(MODEL, other)
    app = open_app("checks", checkpoint=f"hub:{other}", agreed=f"hub:{other}")
    assert ranges(hub, other) == HEADER
    before = hub.sent
    app.main.button(key=f"fetch check {link}").click().run()
    assert not app.exception
    assert not app.error, [each.value for each in app.error]
    assert "Headers only" not in said(app)
    assert hub.sent - before == hub.files["model.safetensors"].nbytes
    assert app.query_params["checkpoint"] in (link, [link])
    assert other in said(app)
    assert hub.authorized == []
    assert "Headers only" not in said(open_app("overview", checkpoint=link, agreed=link))
