"""Scan your own server for responses that reveal too much.

python -m tools.scan          starts the app on a free port, with a store of its own, and scans it
python -m tools.scan URL      scans a server that runs on this machine
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from inspector.serving.place import is_local
from tools.scan.leaks import Watch
from tools.scan.scanning import scan, watch_for


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
    from inspector.serving.trial import start_app, wait_until_up

    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_hex(16)
        home = Path(folder)
        # With folders of its own, as a server for others has them: without, this machine's user opens any path
        secret = {"SCAN_TOKEN": token, "HF_TOKEN": f"hf_{token}"}
        server = start_app(home, module=module, INSPECTOR_ROOTS=str(home / "offered"), **secret)
        try:
            wait_until_up(server)
            watch = watch_for(dict(os.environ), home=home, secrets=[token])
            scan(server.url, watch)
        finally:
            server.stop()
        for line in server.complaints():
            watch.note("failure", "the server's log", line)
    return watch


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
