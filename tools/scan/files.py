"""Uploads that are refused, and links that open nothing."""

from __future__ import annotations

import io
import json
import pickle  # noqa: TID251  (what a hostile file looks like; nothing here reads one)
import struct
import zipfile

LINKS = (
    "path:/etc",
    "path:/proc/self/environ",
    "path:/no/such/folder",
    "path:../../etc",
    "path:~",
    "path:" + "a" * 5000,
    "upload:000000000000",
    "upload:xyz",
    "incoming:" + "0" * 32,
    "hub:../../etc",
    "demo-nothing",
    "x" * 3000,
    "<script>alert(1)</script>",
    "\u202e\ufffd%00",
    "demo-__init__",
    "www.example.org mailto:a@example.org https://example.org",
)


class _Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("A pickle in an upload was executed.",)


def bad_files() -> dict[str, bytes]:
    """Files by name, each of which must be refused in a sentence."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}).encode()
    cut = struct.pack("<Q", len(header)) + header
    config = b'{"model_type": "bert", "architectures": ["BertModel"]}'
    return {
        "noise.zip": bytes(range(256)) * 8,
        "empty.zip": b"",
        "noise.tar.gz": b"\x1f\x8b" + bytes(range(200)),
        "../../evil.zip": _zip({"config.json": config}),
        "<b>&amp;\u202e.zip": _zip({"model.safetensors": cut}),
        "truncated.zip": _zip({"config.json": config, "model.safetensors": cut}),
        "climbs.zip": _zip({"../../../tmp/x/config.json": config}),
        "deep.zip": _zip({"config.json": b"[" * 100_000, "model.safetensors": cut}),
        "pickle.zip": _zip({"config.json": config, "pytorch_model.bin": pickle.dumps(_Runs())}),
        "strange.zip": _zip({"config.json": b'{"model_type": "os.system"}', "model.safetensors": cut}),
        "code.zip": _zip(
            {
                "config.json": b'{"auto_map": {"AutoModel": "m.M"}, "model_type": "m"}',
                "m.py": b"raise SystemExit",
                "model.safetensors": cut,
            }
        ),
    }


def _zip(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()
