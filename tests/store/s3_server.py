"""A real S3 API on loopback, in a process of its own, and what lies there, seen from outside."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

BUCKET = "uploads"
KEY, SECRET = "AKIATESTTESTTESTTEST", "s3cret-that-nobody-may-see"
WAIT_SECONDS = 120.0  # until a test gives up
# Moto asks for a signature and does not check it.
SIGNED = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
}
NAMES = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def running_s3() -> Iterator[str]:
    """Moto's server with one bucket; its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + WAIT_SECONDS
        while not _answers(f"{address}/{BUCKET}", "PUT"):
            assert process.poll() is None, "moto did not start"
            assert time.monotonic() < end, "moto does not answer"
            time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()


def environment(address: str) -> dict[str, str]:
    """What an operator sets for such a store."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


class S3Place:
    """A folder of the bucket, by plain HTTP."""

    def __init__(self, address: str, folder: str) -> None:
        self.url = f"s3://{BUCKET}/{folder}"
        self._bucket = f"{address}/{BUCKET}"
        self._folder = folder

    def files(self) -> dict[str, bytes]:
        """Every object below the folder."""
        listed = _ask(f"{self._bucket}?list-type=2&prefix={self._folder}/", "GET")
        keys = [element.text or "" for element in ElementTree.fromstring(listed).iter(f"{NAMES}Key")]
        return {key.removeprefix(f"{self._folder}/"): _ask(f"{self._bucket}/{key}", "GET") for key in keys}

    def put(self, path: str, data: bytes) -> None:
        """Change an object behind everybody's back."""
        _ask(f"{self._bucket}/{self._folder}/{path}", "PUT", data)

    def remove(self, path: str) -> None:
        """Likewise."""
        _ask(f"{self._bucket}/{self._folder}/{path}", "DELETE")


def _answers(url: str, method: str) -> bool:
    try:
        _ask(url, method)
    except (urllib.error.URLError, ConnectionError):
        return False
    return True


def _ask(url: str, method: str, data: bytes | None = None) -> bytes:
    request = urllib.request.Request(url, data=data, method=method, headers=SIGNED)
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
        return answer.read()
