"""The environment of a worker: an allow-list of the server's, so that secrets stay behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import inspector
from inspector.sandbox.limits import TEMPLATE_SECONDS, TOKENIZER_SECONDS
from inspector.settings import Settings
from inspector.store.keeping.compiled import CHECKED, OWN, compiled_folder
from inspector.store.processors import count_processors

KEPT = {
    "CUDA_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HOME",
    "HUGGINGFACE_HUB_CACHE",
    "LANG",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHASHSEED",
    "RAYON_NUM_THREADS",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
}
KEPT_PREFIXES = (*("CUDA_", "GOMP_", "LC_", "MKL_", "NUMBA_", "NVIDIA_", "OMP_", "PYTORCH_"),)
# Whatever starts like one of these and is named for a secret stays behind all the same.
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|KEY")
# Compiled code that a process keeps for others, a worker reads as the engine says.
NOT_KEPT = {OWN}
# A proxy's address may hold a password: only for the worker that downloads.
KEPT_FOR_DOWNLOADS = {
    *("HF_ENDPOINT", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
    *("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("all_proxy", "http_proxy", "https_proxy", "no_proxy"),
}
QUIET = {
    "DISABLE_SAFETENSORS_CONVERSION": "1",  # or transformers asks the hub for a converted copy
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # the server writes it: a worker could write what others run
    "PYTHONWARNINGS": "ignore",
    "TOKENIZERS_PARALLELISM": "false",
    "TEMPLATE_SECONDS": str(TEMPLATE_SECONDS),
    "TOKENIZER_SECONDS": str(TOKENIZER_SECONDS),  # which the tokenizer's own calls may take
    "TRANSFORMERS_VERBOSITY": "error",
}
NO_LOGIN = {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}  # the one that `hf auth login` leaves on disk
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
# Threads that wait for each other spin for some microseconds, then give up the processor: spinning
# for longer makes a batch take several times as long where workers share the cores; not spinning
# at all makes a short text take half as long again on a calm machine.
PATIENT = {"GOMP_SPINCOUNT": "20000"}
THREAD_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")


def worker_environment(
    environ: Mapping[str, str], *, settings: Settings, network: bool = False, login: bool = False
) -> dict[str, str]:
    """Build a worker's environment; its settings come as a message.

    Args:
        environ: The server's environment.
        settings: For the number of workers that share the cores.
        network: True for the worker that downloads from the hub; it still stays offline if the
            server itself was told to.
        login: True: it may download with the login of the person who started the program, which
            is not for the web app's visitors.
    """
    downloads = KEPT_FOR_DOWNLOADS if network else set()
    kept = {
        name: value
        for name, value in environ.items()
        if name in KEPT or name in downloads or (name.startswith(KEPT_PREFIXES) and not SECRET.search(name))
        if name not in NOT_KEPT
    }
    threads = str(worker_threads(workers=settings.workers))
    return {
        **dict.fromkeys(THREAD_VARIABLES, threads),
        **PATIENT,
        **kept,
        **QUIET,
        **({} if network else OFFLINE),
        **({} if network and login else NO_LOGIN),
        CHECKED: str(compiled_folder(settings.home)),
        "PYTHONPATH": str(Path(inspector.__file__).resolve().parents[1]),
    }


def worker_threads(*, workers: int) -> int:
    """Threads of one worker: all cores of a small machine, a share of a large one."""
    cores = count_processors()
    return min(cores, max(4, cores // workers))
