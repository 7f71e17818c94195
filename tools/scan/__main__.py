"""Scan your own server for responses that reveal too much.

python -m tools.scan          starts the app on a free port, with a store of its own, and scans it
python -m tools.scan URL      scans a server that runs on this machine
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from inspector.serving.place import is_local
from inspector.serving.trial import Server, start_app, wait_until_up
from tools.scan.leaks import Watch
from tools.scan.scanning import scan, scan_memory, watch_for
from tools.scan.sign_in import scan_behind_proxy, scan_oidc, secrets_file


def main(arguments: list[str]) -> int:
    """Scan, print what was found, and give the exit status: 0 where nothing was."""
    if arguments:
        if not is_local(urlsplit(arguments[0]).hostname or ""):
            print("Only a server on this machine can be scanned: give http://localhost and its port.")
            return 2
        watch = watch_for({}, home=None, secrets=[])
        scan(arguments[0].rstrip("/"), watch)
    else:
        watch = scan_own()
    for leak in watch.leaks.values():
        print(f"{leak.kind}: {leak.where}: {leak.excerpt}")
    print(f"{watch.counted['answers']:,} answers, {watch.counted['bytes']:,} bytes, {len(watch.leaks)} leaks")
    return 1 if watch.leaks else 0


def scan_own(module: str = "streamlit") -> Watch:
    """Start the app with values in its environment that nobody may see, and scan it.

    Args:
        module: What Python runs to start it.
    """
    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_hex(16)
        home = Path(folder)
        watch = watch_for(dict(os.environ), home=home, secrets=[token])
        # With folders of its own, as a server for others has them: without, this machine's user opens any path
        hidden = {"SCAN_TOKEN": token, "HF_TOKEN": f"hf_{token}", "INSPECTOR_ROOTS": str(home / "offered")}
        with _started(home, module, hidden, watch) as server:
            scan(server.url, watch)
            scan_memory(server.url, watch, lambda: psutil.Process(server.process.pid).memory_info().rss)
        by_proxy = {"INSPECTOR_SIGN_IN": "proxy", "INSPECTOR_PROXY_SECRET": token, "INSPECTOR_PEOPLE": "ada"}
        with _started(home, module, hidden | by_proxy, watch) as server:
            scan_behind_proxy(server.url, watch, token)
        (file := home / "secrets.toml").write_text(secrets_file(token * 2, token))
        oidc = {"INSPECTOR_SIGN_IN": "oidc", "INSPECTOR_PEOPLE": "@example.org"}
        with _started(home, module, hidden | oidc, watch, f"--secrets.files={file}") as server:
            scan_oidc(server.url, watch, token * 2)
    return watch


@contextmanager
def _started(home: Path, module: str, environment: dict[str, str], watch: Watch, *options: str) -> Iterator[Server]:
    """Start the app; what it complains of is a failure."""
    server = start_app(home, *options, module=module, **environment)
    try:
        wait_until_up(server)
        yield server
    finally:
        server.stop()
    for line in server.complaints():
        watch.note("failure", "the server's log", line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
