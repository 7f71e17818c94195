"""Models of the Hugging Face hub: fetched from there, or found in its cache on this machine."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.settings import Settings
from inspector.store.names import (
    CONFIGS,
    HEADERS,
    INDEXES,
    MODULE_FILES,
    MODULE_FOLDER,
    MODULES,
    VOCABULARIES,
    weight_format,
)
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source, folder_source
from inspector.text import bytes_text, quoted

WANTED = (*CONFIGS, *VOCABULARIES, *INDEXES, "model*.safetensors", "adapter_model.safetensors")
OLD_WANTED = (*WANTED, "pytorch_model*.bin", "adapter_model.bin")  # fetched only where there are no safetensors
HEADERS_ALONE = (
    "Of {size} of weights on the hub, the headers alone were fetched: names, shapes and dtypes are known, no numbers."
)
COMMIT = re.compile(r"[0-9a-f]{40}")
COMMIT_DIGITS, SHOWN_DIGITS = 40, 7
BETWEEN = "@"  # a model's id and a revision
NAME = r"[A-Za-z0-9][\w.-]{0,95}"
REVISION = r"(?=.{1,200}$)[A-Za-z0-9_][\w.+-]*(/[A-Za-z0-9_][\w.+-]*)*"  # a branch, a tag or a commit
HOSTS = ("huggingface.co", "hf.co")
REVISED = ("tree", "blob", "resolve", "raw", "blame", "commits", "commit")  # before a revision in an address
NO_MODEL = (
    "{address} is not the address of a model on the hub, of a version or of a file: give its id, such as org/name."
)
SILENT_SECONDS = 20.0  # without a word from the hub, after which it counts as out of reach


@dataclass(frozen=True, slots=True)
class HubModel(Origin):
    """A model of the hub, by its id, or one version of it: "org/name@revision"."""

    word: ClassVar[str] = "hub"
    values: ClassVar[re.Pattern[str]] = re.compile(rf"{NAME}(/{NAME})?({BETWEEN}{REVISION})?")
    downloads: ClassVar[bool] = True
    anywhere: ClassVar[bool] = True
    public: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        """Its id."""
        return self.value

    @property
    def name(self) -> str:
        """Its id; of a commit, only the first digits."""
        model, between, revision = self.value.partition(BETWEEN)
        return model + between + (revision[:SHOWN_DIGITS] if COMMIT.fullmatch(revision) else revision)

    def find(self, reach: Reach) -> Source:
        """The files of the version that was fetched."""
        if reach.fetched is None:
            raise CheckpointError(f"{self.value} has not been fetched from the hub: open it again.")
        if reach.fetched.parent.name != HEADERS:
            return folder_source(reach.fetched, kind="hub", name=self.name)
        source = folder_source(reach.fetched, kind=HEADERS, name=self.name)
        nbytes = sum(path.stat().st_size for name, path in source.files.items() if weight_format(name))
        return replace(source, told=(HEADERS_ALONE.format(size=bytes_text(nbytes)),), outline=True)

    def costs(self, settings: Settings) -> int:
        """As much as an upload may have: nobody knows yet."""
        return settings.upload_nbytes

    def becomes(self, fingerprint: str, fetched: Path | None = None) -> str:
        """The commit that was fetched: what a branch or a tag names can change."""
        commit = fetched.name[:COMMIT_DIGITS] if fetched else ""
        if not COMMIT.fullmatch(commit):
            return str(self)
        return f"{self.word}:{self.value.partition(BETWEEN)[0]}{BETWEEN}{commit}"


def named_by(text: str) -> str:
    """What a person means who gives the address of a model on the hub, of a version or of a file of it.

    Returns:
        The model's id, with the revision that the address names; any text that is no address of the web, as it is.

    Raises:
        CheckpointError: If the address is another one.
    """
    is_address = text.startswith(("https://", "http://"))
    try:
        address = urlsplit(text if is_address else f"https://{text}")
    except ValueError:  # brackets that hold no address of IPv6
        return text
    if address.netloc not in {*HOSTS, urlsplit(os.environ.get("HF_ENDPOINT", "")).netloc} - {""}:
        if is_address:
            raise CheckpointError(NO_MODEL.format(address=quoted(text)))
        return text
    parts = [unquote(part) for part in address.path.split("/") if part]
    place = next((place for place, part in enumerate(parts[:3]) if place and part in REVISED), len(parts))
    revision = parts[place + 1 : place + 2]
    if revision == ["refs"]:
        revision = parts[place + 1 : place + 4]
    named = BETWEEN.join(["/".join(parts[:place]), *filter(None, ["/".join(revision)])])
    if not HubModel.values.fullmatch(named):
        raise CheckpointError(NO_MODEL.format(address=quoted(text)))
    return named


def endpoint() -> str | None:
    """Where the hub is; None: where the hub's library says."""
    return os.environ.get("HF_ENDPOINT") or None


def hub_folder() -> Path:
    """Where the hub's library keeps what it has fetched."""
    hub = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or hub_home() / "hub"
    return Path(hub).expanduser()


def hub_home() -> Path:
    """The hub's library's own folder, which also holds the login."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return Path(os.environ.get("HF_HOME") or caches / "huggingface").expanduser()


def versions_folder(named: str) -> Path:
    """Where the hub's cache has the versions of a model: a folder each, whose name has 40 hex digits."""
    return hub_folder() / f"models--{named.partition(BETWEEN)[0].replace('/', '--')}" / "snapshots"


def download(named: str, *, progress: Progress) -> Path:
    """Fetch the files of a model that are read here, and no code.

    Args:
        named: The hub's name of it, "org/name", or of a version, "org/name@revision".

    Returns:
        The folder in the hub's cache.

    Raises:
        CheckpointError: If the model cannot be fetched and is not in the cache.
    """
    # Imported late: half a second, and only this kind of checkpoint needs it.
    from huggingface_hub import snapshot_download

    bound_silence()
    model, _, revision = named.partition(BETWEEN)
    progress(None, f"Requesting {model} from the hub")
    with asking(model, revision):
        for wanted in (WANTED, OLD_WANTED):
            patterns = [*wanted, *(f"0_*/{each}" for each in wanted)]  # what INNER matches
            bar = _reporting(model, progress)
            found = snapshot_download(
                model, revision=revision or None, allow_patterns=patterns, tqdm_class=bar, endpoint=endpoint()
            )
            folder = Path(found)
            if any(folder.glob("*.safetensors")) or any(folder.glob("0_*/*.safetensors")):
                break
        if (folder / MODULES).is_file() and (modules := _module_files(model, folder.name)):
            snapshot_download(model, revision=folder.name, allow_patterns=modules, endpoint=endpoint())
    return folder


def _module_files(model: str, commit: str) -> list[str]:
    """The files of sentence-transformers' further modules; none where the hub is out of reach: the cache may have them.

    By exact names: a pattern's star goes into folders of folders.
    """
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        listed = HfApi(endpoint=endpoint()).list_repo_files(model, revision=commit)
    except (HTTPError, OfflineModeIsEnabled, ConnectionError, TimeoutError):
        return []
    split = ((name, *name.partition("/")[::2]) for name in listed)
    return [name for name, folder, file in split if MODULE_FOLDER.fullmatch(folder) and file in MODULE_FILES]


@contextmanager
def asking(model: str, revision: str = "") -> Iterator[None]:
    """Turn what the hub and its library refuse into sentences.

    Args:
        model: That is asked about.
        revision: That the person named; "": none.

    Raises:
        CheckpointError: Saying what is wrong with the model, the person's rights or the network.
    """
    from httpx2 import HTTPError  # what the hub's library itself speaks through
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise CheckpointError(
            f"{model} is gated: accept its terms on the hub, download it with your own login, "
            "and open that folder or upload it."
        ) from error
    except RepositoryNotFoundError as error:
        raise CheckpointError(f"The hub has no model {model}, or you may not read it: check the name.") from error
    except RevisionNotFoundError as error:
        raise CheckpointError(
            f"The hub has no revision {revision} of {model}: name a branch, a tag or a commit."
            if revision
            else f"The hub no longer has the version of {model} that it named: try again."
        ) from error
    except LocalEntryNotFoundError as error:
        raise CheckpointError(
            f"{model} is not in the hub's cache on this machine and the hub cannot be reached: "
            "connect to the network, or upload the checkpoint."
        ) from error
    except (HTTPError, HFValidationError, ConnectionError, TimeoutError) as error:
        raise CheckpointError(
            f"{model} could not be downloaded from the hub: check its name and the connection, then try again."
        ) from error


def bound_silence() -> None:
    """Let no request to the hub wait for ever, which some of its library's own would, and its library say nothing."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # of permissions that a confined process does not set

    client = get_session()
    hooks = client.event_hooks
    if _limit_waiting not in hooks["request"]:
        hooks["request"].append(_limit_waiting)
        client.event_hooks = hooks


def _limit_waiting(request: Any) -> None:
    wanted = request.extensions.get("timeout") or {}
    request.extensions["timeout"] = {
        phase: wanted.get(phase) or SILENT_SECONDS for phase in ("connect", "read", "write", "pool")
    }


def _reporting(model: str, progress: Progress) -> Any:
    """A progress bar for the hub's library that draws nothing and tells `progress`."""
    from tqdm import tqdm

    class Reporting(tqdm):
        def __init__(self, *args: Any, **settings: Any) -> None:
            settings.pop("name", None)
            super().__init__(*args, **{**settings, "file": io.StringIO(), "disable": False})

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            """Report the bars that count bytes; the one that counts files says nothing new."""
            if self.unit == "B" and self.total and self.n:
                megabytes = f"{self.n / 1e6:,.0f} of {self.total / 1e6:,.0f} MB"
                progress(min(self.n / self.total, 1.0), f"Fetching {model}: {megabytes}")

    return Reporting
