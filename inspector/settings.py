"""Settings from environment variables, checked once at start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import platformdirs

from inspector.errors import SettingsError
from inspector.program import how_to_add

Device = Literal["auto", "cpu", "cuda", "mps", "spread", "stream"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Confine = Literal["auto", "required", "off"]
Evict = Literal["results", "uploads"]
MB = 1_000_000
EVERYWHERE = (Path("/"),)  # roots under which nothing is outside
MOST = 1e9  # of any number
REST_MB = 1_000  # of a worker's folder beside an upload and a saved model: maps, what libraries keep
MODEL_SHARE = 0.6  # of a worker's memory: the rest is for libraries, and for what is computed


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How the Ray engine's replicas are deployed."""

    least: int  # replicas at any time
    most: int  # replicas when many people ask
    cpus: float  # that Ray keeps for a replica
    gpus: float  # likewise: a fraction of one, or whole ones
    requests: int  # that a replica takes at once; those beyond its workers are answered in batches
    queue: int  # requests of one server that wait for a replica; the next one is asked again later


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says; every limit has a default that suits a laptop."""

    home: Path  # store of uploads and results
    roots: tuple[Path, ...]  # folders that the web app may open by path
    engine: Literal["local", "ray"]
    device: Device
    dtype: Dtype
    upload_nbytes: int  # largest upload, counted after unpacking
    worker_nbytes: int  # memory of its own, mapped files left out, at which a worker is ended
    model_nbytes: int  # of main memory that a model's weights may take; a larger one is streamed or spread
    request_seconds: float  # wall time at which a request is ended
    workers: int  # worker processes at once, the warm spare not counted
    cpu_seconds: float  # processor time at which a request is ended
    open_seconds: float  # processor time at which the opening of a checkpoint is ended
    worker_threads: int  # threads at which a worker is ended
    worker_files: int  # files that a worker may have open at once
    worker_disk_nbytes: int  # all that a worker may keep in its own folder
    confinement: Confine  # "required": a worker that cannot be confined does not start
    worker_user: str  # that workers become where root starts them
    store_nbytes: int  # all that the store may hold
    person_nbytes: int  # all uploads of one owner
    shared_nbytes: int | None  # all uploads of the shared store; None: whatever it takes
    store_evict: Evict  # what may go to make room: results that can be made again, or uploads too
    cluster: ClusterSettings
    given: Path | None = None  # of a worker: what the server gives it to read; `home` is then its own folder
    uploads: Path | None = None  # of a command's child: the store whose uploads it opens; `home` is a folder of its own
    store: str | None = None  # where every server of a cluster finds the uploads, an fsspec URL

    @property
    def readable(self) -> Path:
        """Where checkpoints and arriving uploads are read."""
        return self.given or self.home

    @property
    def file_nbytes(self) -> int:
        """Largest file that a worker may write: an upload's, and what is written about it."""
        return self.upload_nbytes + 64 * MB


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read the settings from an environment.

    Raises:
        SettingsError: If a variable holds a value that cannot be used; the text names it.
    """
    worker_mb = _number(environ, "INSPECTOR_WORKER_MB", 12_000)
    upload_mb = _number(environ, "INSPECTOR_UPLOAD_MB", 4_000)
    store_mb = _number(environ, "INSPECTOR_STORE_MB", 20_000)
    model_mb = _number(environ, "INSPECTOR_MODEL_MB", MODEL_SHARE * worker_mb)
    kept_mb = min(upload_mb + model_mb + REST_MB, MOST)
    home = environ.get("INSPECTOR_HOME") or platformdirs.user_data_dir("checkpoint-inspector")
    roots = environ.get("INSPECTOR_ROOTS", "")
    return Settings(
        home=Path(home).expanduser().absolute(),
        roots=tuple(Path(root).expanduser().resolve() for root in roots.split(os.pathsep) if root),
        engine=_choice(environ, "INSPECTOR_ENGINE", ("local", "ray")),
        device=_choice(environ, "INSPECTOR_DEVICE", get_args(Device)),
        dtype=_choice(environ, "INSPECTOR_DTYPE", get_args(Dtype)),
        upload_nbytes=round(upload_mb * MB),
        worker_nbytes=round(worker_mb * MB),
        model_nbytes=round(model_mb * MB),
        request_seconds=_number(environ, "INSPECTOR_SECONDS", 900),
        workers=round(_number(environ, "INSPECTOR_WORKERS", 4)),
        cpu_seconds=_number(environ, "INSPECTOR_CPU_SECONDS", 3_600),
        open_seconds=_number(environ, "INSPECTOR_OPEN_SECONDS", 30),
        worker_threads=round(_number(environ, "INSPECTOR_WORKER_THREADS", 512)),
        worker_files=round(_number(environ, "INSPECTOR_WORKER_FILES", 1_024)),
        worker_disk_nbytes=round(_number(environ, "INSPECTOR_WORKER_DISK_MB", kept_mb) * MB),
        confinement=_choice(environ, "INSPECTOR_CONFINEMENT", get_args(Confine)),
        worker_user=_user(environ),
        store_nbytes=round(store_mb * MB),
        person_nbytes=round(_number(environ, "INSPECTOR_PERSON_MB", store_mb) * MB),
        shared_nbytes=round(shared_mb * MB)
        if (shared_mb := _number(environ, "INSPECTOR_SHARED_MB", MOST)) < MOST
        else None,
        store_evict=_choice(environ, "INSPECTOR_STORE_EVICT", get_args(Evict)),
        cluster=_cluster(environ),
        store=_store(environ.get("INSPECTOR_STORE", "").strip()),
    )


@cache
def settings() -> Settings:
    """The settings of this process, read once."""
    return read_settings(os.environ)


def _store(text: str) -> str | None:
    """The shared store's URL; what is refused is not repeated, for it may hold a secret."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return f"file://{Path(text).expanduser().absolute()}" if text else None
    if ":" in rest.partition("/")[0].rpartition("@")[0] or "?" in rest or "#" in rest:
        raise SettingsError(
            "INSPECTOR_STORE contains more than a location: set it to a folder or a URL such as "
            "s3://bucket/folder, and pass keys and options through the object store's own "
            "variables."
        )
    return f"{_scheme(scheme)}://{rest.rstrip('/')}"


def _scheme(scheme: str) -> str:
    from fsspec.registry import known_implementations  # only who shares a store waits for it

    known = known_implementations.get(scheme.lower())
    if known is None:
        raise SettingsError(
            "INSPECTOR_STORE starts with an unknown kind of store: set it to a folder, file://… or s3://bucket/folder."
        )
    if find_spec(known["class"].partition(".")[0]) is None:
        raise SettingsError(
            f"INSPECTOR_STORE is a {scheme.lower()}:// store, but its package is not installed: "
            f"{how_to_add('ray')}, or install the package that fsspec names for it."
        )
    return scheme.lower()


def _choice(environ: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> Any:
    value = environ.get(name) or allowed[0]
    if value not in allowed:
        raise SettingsError(f"{name} is {value!r}: set it to one of {', '.join(allowed)}.")
    return value


def _user(environ: Mapping[str, str]) -> str:
    """The workers' user; the usual one need not exist."""
    name = environ.get("INSPECTOR_WORKER_USER") or ""
    if not name:
        return "nobody"
    with suppress(ImportError):  # Windows has no such users
        import pwd

        try:
            pwd.getpwnam(name)
        except KeyError:
            raise SettingsError(
                f"INSPECTOR_WORKER_USER is {name!r}, and there is no such user: create it, or name another."
            ) from None
    return name


def _cluster(environ: Mapping[str, str]) -> ClusterSettings:
    found = ClusterSettings(
        least=round(_number(environ, "INSPECTOR_RAY_MIN", 1)),
        most=round(_number(environ, "INSPECTOR_RAY_MAX", 8)),
        cpus=_number(environ, "INSPECTOR_RAY_CPUS", 1, least=0),
        gpus=_number(environ, "INSPECTOR_RAY_GPUS", 0, least=0),
        requests=round(_number(environ, "INSPECTOR_RAY_REQUESTS", 64)),
        queue=round(_number(environ, "INSPECTOR_RAY_QUEUE", 256)),
    )
    if found.most < found.least:
        raise SettingsError(
            f"INSPECTOR_RAY_MAX is {found.most}, but INSPECTOR_RAY_MIN is {found.least}: set the "
            "maximum at least as high as the minimum."
        )
    if found.gpus > 1 and found.gpus != round(found.gpus):
        raise SettingsError(
            f"INSPECTOR_RAY_GPUS is {found.gpus}: set it to a fraction of one GPU, such as 0.25, or to a whole number."
        )
    return found


def _number(environ: Mapping[str, str], name: str, default: float, *, least: float = 1) -> float:
    text = environ.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= MOST:
        raise SettingsError(f"{name} is {text!r}: set it to a number from {least} to 1000000000.")
    return value
