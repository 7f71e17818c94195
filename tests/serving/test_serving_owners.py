"""An upload is whoever sent it's: who lists, opens, renames, shares and deletes it, and what equal content tells."""

from __future__ import annotations

from dataclasses import replace
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from inspector.errors import CheckpointError
from inspector.serving.storing import uploads
from inspector.serving.storing.owners import Requester
from inspector.serving.storing.registry import discard_upload, write_upload
from inspector.serving.storing.room import check_room, reserve_upload
from inspector.store.keeping.quota import account, used_nbytes
from inspector.store.manifests.entries import OWNERS, UPLOADS
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.store.store_builders import opened, small_checkpoint

ADA, EVE = Requester("a" * 64), Requester("e" * 64)
ADMIN = Requester("d" * 64, is_admin=True)
HERE = Requester()  # one's own machine


@pytest.fixture
def folder(tmp_path):
    return small_checkpoint(tmp_path / "mini")


def send(settings, folder, asker: Requester, name: str) -> str:
    """Upload a folder under a name; its fingerprint."""
    upload, place = reserve_upload(0, settings, asker.owner)
    for path in folder.iterdir():
        write_upload(place, f"{name}/{path.name}", path.read_bytes())
    return opened(CheckpointRef("incoming", upload), settings)[0].fingerprint


def names(settings, asker: Requester) -> list[str]:
    return [each.name for each in uploads.list_uploads(settings, asker)]


def find(settings, asker: Requester, digits: str) -> str:
    return uploads.find_upload(CheckpointRef("upload", digits), settings, asker).value


def test_a_list_shows_ones_own_and_what_is_shared(settings, folder):
    fingerprint = send(settings, folder, ADA, "hers")
    assert [names(settings, each) for each in (ADA, EVE, ADMIN, HERE)] == [["hers"], [], ["hers"], ["hers"]]
    with pytest.raises(CheckpointError, match="only its owners"):
        uploads.share_upload(fingerprint, shared=True, settings=settings, asker=EVE)
    uploads.share_upload(fingerprint, shared=True, settings=settings, asker=ADA)
    assert names(settings, EVE) == ["hers"]
    uploads.share_upload(fingerprint, shared=False, settings=settings, asker=ADA)
    assert names(settings, EVE) == []


def test_one_person_has_no_more_than_one_may(settings, folder):
    send(settings, folder, ADA, "hers")
    (held,) = account(settings).uploads
    tight = replace(settings, person_nbytes=held.nbytes + 1_000)
    said = "of the .* MB that one person may have"
    for ask in (
        lambda: check_room(1_001, tight, ADA.owner),
        lambda: reserve_upload(1_001, tight, ADA.owner),
        lambda: reserve_upload(1, tight, ADA.owner, arrived=1_000),
    ):
        with pytest.raises(CheckpointError, match=said):
            ask()
    upload, _ = reserve_upload(600, tight, ADA.owner)
    with pytest.raises(CheckpointError, match=said):  # what is arriving counts
        check_room(600, tight, ADA.owner)
    check_room(400, tight, ADA.owner)
    for others in (EVE.owner, HERE.owner):
        check_room(held.nbytes, tight, others)
    discard_upload(upload, settings=tight)
    check_room(1_000, tight, ADA.owner)


def test_an_archive_counts_as_its_owners_files_unpacked(settings, folder, tmp_path):
    (folder / "vocab.txt").write_text("word\n" * 500_000)
    packed = tmp_path / "mini.zip"
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.write(path, f"mini/{path.name}")

    def unpack(most: int) -> None:
        limited = replace(settings, person_nbytes=most)
        upload, place = reserve_upload(packed.stat().st_size, limited, ADA.owner)
        write_upload(place, packed.name, packed.read_bytes())
        opened(CheckpointRef("incoming", upload), limited)

    with pytest.raises(CheckpointError, match=r"of the .* MB that one person may have"):
        unpack(2 * packed.stat().st_size)
    assert list_checkpoints(settings) == ()
    most = sum(path.stat().st_size for path in folder.iterdir()) + 20_000  # for what is written beside the files
    unpack(most)
    (held,) = account(settings).uploads
    assert 2 * packed.stat().st_size < held.nbytes <= most < held.nbytes + packed.stat().st_size


def test_a_whole_fingerprint_opens_it_and_fewer_digits_only_ones_own(settings, folder):
    fingerprint = send(settings, folder, ADA, "hers")
    assert find(settings, EVE, fingerprint) == fingerprint
    assert find(settings, ADA, fingerprint[:12]) == fingerprint
    with pytest.raises(CheckpointError, match="not one of yours"):
        find(settings, EVE, fingerprint[:63])


def test_only_an_owner_renames_pins_and_deletes(settings, folder):
    fingerprint = send(settings, folder, ADA, "hers")
    uploads.share_upload(fingerprint, shared=True, settings=settings, asker=ADA)
    for change in (
        lambda asker: uploads.rename_upload(fingerprint, "taken", settings=settings, asker=asker),
        lambda asker: uploads.pin_upload(fingerprint, pinned=True, settings=settings, asker=asker),
        lambda asker: uploads.delete_upload(fingerprint, settings=settings, asker=asker),
    ):
        with pytest.raises(CheckpointError, match="only its owners"):
            change(EVE)
    uploads.rename_upload(fingerprint, "renamed", settings=settings, asker=ADA)
    uploads.pin_upload(fingerprint, pinned=True, settings=settings, asker=ADA)
    (stored,) = list_checkpoints(settings)
    assert (stored.name, stored.pinned) == ("renamed", True)
    assert names(settings, EVE) == ["renamed"]
    uploads.delete_upload(fingerprint, settings=settings, asker=ADMIN)
    assert list_checkpoints(settings) == ()


def test_equal_content_is_stored_once_and_tells_neither_owner_of_the_other(settings, folder):
    fingerprint = send(settings, folder, ADA, "alpha")
    uploads.pin_upload(fingerprint, pinned=True, settings=settings, asker=ADA)
    assert send(settings, folder, EVE, "beta") == fingerprint
    assert len(list_checkpoints(settings)) == 1
    hers, theirs = (uploads.list_uploads(settings, each)[0] for each in (ADA, EVE))
    assert [(each.name, each.pinned) for each in (hers, theirs)] == [("alpha", True), ("beta", False)]
    uploads.rename_upload(fingerprint, "gamma", settings=settings, asker=EVE)
    assert [names(settings, each) for each in (ADA, EVE)] == [["alpha"], ["gamma"]]
    uploads.delete_upload(fingerprint, settings=settings, asker=ADA)
    assert [names(settings, each) for each in (ADA, EVE)] == [[], ["gamma"]]
    (stored,) = list_checkpoints(settings)
    assert (stored.name, stored.pinned) == ("gamma", False)  # nothing of hers stays
    uploads.delete_upload(fingerprint, settings=settings, asker=EVE)
    assert list_checkpoints(settings) == ()


def test_what_was_sent_on_ones_own_machine_is_everybodys_and_stays_it(settings, folder):
    fingerprint = send(settings, folder, HERE, "ours")
    assert send(settings, folder, EVE, "mine") == fingerprint
    assert names(settings, ADA) == ["ours"]
    uploads.rename_upload(fingerprint, "theirs", settings=settings, asker=EVE)
    assert names(settings, ADA) == ["theirs"]


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"x": {}}', b'{"' + b"e" * 64 + b'": {"name": "x"}}'])
def test_a_damaged_list_of_owners_leaves_an_upload_nobodys(settings, folder, damage):
    fingerprint = send(settings, folder, ADA, "hers")
    (settings.home / UPLOADS / fingerprint / OWNERS).write_bytes(damage)
    assert [names(settings, each) for each in (ADA, EVE, ADMIN)] == [[], [], ["hers"]]
    assert send(settings, folder, ADA, "again") == fingerprint
    assert names(settings, ADA) == ["again"]


def test_a_full_store_names_nobodys_own_upload(settings, folder):
    send(settings, folder, ADA, "secret name")
    with pytest.raises(CheckpointError, match=r"store is full: .* make room by deleting an upload") as refused:
        reserve_upload(1000, replace(settings, store_nbytes=used_nbytes(settings)), EVE.owner)
    assert "secret name" not in str(refused.value)
