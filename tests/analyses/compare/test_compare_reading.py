"""What of two checkpoints is read: headers alone, a sample, numbers up to the first difference, other strides."""

from __future__ import annotations

import math

import pytest
import torch

from inspector.analyses.compare import compute_streams, compute_sums
from inspector.analyses.compare.compute_streams import Stored
from inspector.analyses.compare.compute_tensors import compare_tensors
from inspector.analyses.compare.words import UNREAD
from inspector.store.readers import streams
from tests.analyses.compare.compare_truth import BIAS, EMBEDDING, ask, by_name, truth
from tests.conftest import silent
from tests.families import random_model


@pytest.mark.parametrize(("piece", "span"), [(1 << 24, 7), (12, 1 << 15), (1_000, 100)])
def test_pieces_give_what_the_whole_gives(monkeypatch, open_model, piece, span):
    first = open_model("BertForMaskedLM")
    second = open_model("GPT2LMHeadModel")
    one = next(t for t in first.manifest.tensors if t.name == EMBEDDING)
    other = next(t for t in second.manifest.tensors if t.name == "transformer.wte.weight")
    assert one.shape == other.shape
    monkeypatch.setattr(streams, "PIECE", piece)
    monkeypatch.setattr(compute_sums, "SPAN", span)
    (found,) = compare_tensors([(Stored(first.manifest, one), Stored(second.manifest, other))], silent)
    relative, cosine, largest = truth(first.embedding_matrix(), second.state["transformer.wte.weight"])
    assert found.sums is not None
    assert found.sums.count == 60 * 32
    assert found.sums.relative_change == pytest.approx(relative, rel=1e-12)
    assert found.sums.cosine == pytest.approx(cosine, abs=1e-12)
    assert found.sums.max_abs == pytest.approx(largest, rel=1e-12)


def test_headers_alone_say_what_they_decide(saved, monkeypatch):
    model = random_model("BertForMaskedLM")

    def change(tensors):
        del tensors[BIAS]
        tensors["more"] = torch.ones(3)
        tensors[EMBEDDING] = tensors[EMBEDDING].bfloat16()
        return tensors

    first, second = saved(model, "first"), saved(model, "second", change)

    def refuse(*_, **__):
        raise AssertionError("A number was read.")

    monkeypatch.setattr(compute_streams, "stream_together", refuse)
    monkeypatch.setattr(compute_streams, "read_tensors", refuse)
    result = ask(first, second, values="none")
    rows = by_name(result)
    decided = {name: row["status"] for name, row in rows.items() if row["note"] != UNREAD}
    assert decided == {BIAS: "removed", "more": "added"}
    assert (rows[EMBEDDING]["dtype"], rows[EMBEDDING]["other_dtype"]) == ("float32", "bfloat16")
    assert {row["status"] for row in rows.values()} == {"removed", "added", "not compared"}
    assert rows[EMBEDDING]["relative_change"] is None or math.isnan(rows[EMBEDDING]["relative_change"])
    assert result.values == "none"
    assert result.vocabulary is None
    assert f"{len(rows) - 2} tensors have one shape each" in result.summary[0]
    assert any("no numbers were read" in each for each in result.warnings)


@pytest.fixture
def small_samples(monkeypatch):
    """64 bytes a page, and 64 pages a tensor."""
    monkeypatch.setattr(streams, "PAGE", 64)
    monkeypatch.setattr(compute_streams, "BLOCK", 1_000)


def test_a_sample_sees_what_is_everywhere_and_says_what_it_cannot_see(saved, small_samples):
    model, generator = random_model("BertForMaskedLM"), torch.Generator().manual_seed(0)
    numbers = torch.randn(100_000, generator=generator)
    moved = numbers + 0.1 * torch.randn(100_000, generator=generator)
    one_number = numbers.clone()
    one_number[1] += 1  # before the first page
    whole = torch.arange(100_000)
    first = {"moved": numbers, "one": numbers + 1, "whole": whole, "short": torch.ones(7), "cast": numbers + 2}
    second = {"moved": moved, "one": one_number + 1, "whole": whole, "short": torch.ones(7)}
    second["cast"] = first["cast"].bfloat16()
    two = saved(model, "a", lambda all_: all_ | first), saved(model, "b", lambda all_: all_ | second)
    result = ask(*two, values="sample")
    rows = by_name(result)
    assert {name: rows[name]["status"] for name in first} == {
        "moved": "changed",
        "one": "equal in sample",
        "whole": "equal in sample",
        "short": "equal",  # it was read whole
        "cast": "dtype changed",
    }
    assert rows["moved"]["note"] == "from a sample of 1,024 of 100,000 numbers"
    assert rows["whole"]["note"] == "from a sample of 512 of 100,000 numbers"
    assert rows["cast"]["note"].startswith(
        "from a sample of 1,024 of 100,000 numbers; exactly what rounding to bfloat16"
    )
    assert rows["short"]["note"] == ""
    relative, cosine, largest = truth(numbers, moved)
    assert rows["moved"]["relative_change"] == pytest.approx(relative, rel=0.1)
    assert rows["moved"]["cosine"] == pytest.approx(cosine, abs=0.001)
    assert 0 < rows["moved"]["max_abs"] <= largest
    assert rows["moved"]["norm"] == pytest.approx(numbers.norm().item(), rel=0.1)
    every = ask(*two)
    assert result.overall["relative_change"] == pytest.approx(every.overall["relative_change"], rel=0.2)
    assert by_name(every)["one"]["status"] == "changed"  # which the sample could not see
    assert result.values == "sample"
    assert result.summary[0].startswith("Only a sample of each checkpoint was read: the differences")
    assert "tensors that are equal in the sample may differ elsewhere" in result.summary[0]
    assert result.vocabulary is None
    assert "Tokens are not compared: only a sample of the numbers was read. To compare tokens, read all of them." in (
        result.warnings
    )


def test_a_sample_of_small_tensors_is_all_of_them(saved):
    model = random_model("BertForMaskedLM")
    result = ask(saved(model, "a"), saved(model, "b"), values="sample")
    assert result.counts == {"equal": len(result.tensors)}
    assert not any("sample" in sentence for sentence in result.summary)


@pytest.mark.parametrize("shift", [0, 8])
def test_a_sample_of_codes_is_dequantized(shift, saved, small_samples):
    model = random_model("BertForMaskedLM")
    codes = torch.randn(512, 256, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
    other = (codes.view(torch.uint8) + shift).view(torch.float8_e4m3fn)  # 8: each is twice as large
    scale = torch.full((4, 2), 0.5)
    result = ask(
        *(
            saved(model, name, lambda all_, x=x: all_ | {"x.weight": x, "x.weight_scale_inv": scale})
            for name, x in (("a", codes), ("b", other))
        ),
        values="sample",
    )
    row = by_name(result)["x.weight"]
    assert row["status"] == ("changed" if shift else "equal in sample")
    assert row["note"] == "from a sample of 4,096 of 131,072 numbers"
    assert row["relative_change"] == (pytest.approx(1.0, rel=0.05) if shift else 0)


def test_a_sample_of_old_files_with_other_strides_takes_the_same_places(tmp_path, open_path, small_samples):
    torch.manual_seed(0)
    matrix = torch.randn(500, 40)
    straight, turned = tmp_path / "a.bin", tmp_path / "b.bin"
    torch.save({"weight": matrix}, straight)
    torch.save({"weight": (2 * matrix).T.contiguous().T}, turned)
    (row,) = ask(open_path(straight), open_path(turned), values="sample").tensors.to_dict("records")
    assert (row["status"], row["note"]) == ("changed", "from a sample of 4,000 of 20,000 numbers")
    assert (row["relative_change"], row["cosine"]) == (pytest.approx(1.0), pytest.approx(1.0))


@pytest.mark.parametrize(("changed", "whole"), [(0, False), (50_000, True), (None, True)])
def test_whole_numbers_end_at_the_first_difference(changed, whole, saved, monkeypatch):
    monkeypatch.setattr(streams, "PIECE", 1_000)
    monkeypatch.setattr(streams, "PAGE", 64)
    model = random_model("BertForMaskedLM")
    numbers = torch.arange(100_000)
    other = numbers.clone()
    if changed is not None:
        other[changed] = -1
    compared = []
    compare_bits = compute_streams.compare_bits
    monkeypatch.setattr(compute_streams, "compare_bits", lambda a, b: compared.append(len(a)) or compare_bits(a, b))
    found = by_name(
        ask(*(saved(model, name, lambda all_, x=x: all_ | {"x": x}) for name, x in (("a", numbers), ("b", other))))
    )
    assert found["x"]["status"] == ("equal" if changed is None else "changed")
    least = 4 * numbers.nbytes // 10
    assert sum(compared) > least if whole else sum(compared) < least


def test_old_files_with_other_strides_are_read_in_the_same_order(tmp_path, open_path):
    torch.manual_seed(0)
    matrix = torch.randn(6, 5)
    straight, turned = tmp_path / "a.bin", tmp_path / "b.bin"
    torch.save({"weight": matrix}, straight)
    torch.save({"weight": (matrix + 1).T.contiguous().T}, turned)
    (row,) = ask(open_path(straight), open_path(turned)).tensors.to_dict("records")
    relative, cosine, largest = truth(matrix, matrix + 1)
    assert row["relative_change"] == pytest.approx(relative)
    assert row["cosine"] == pytest.approx(cosine)
    assert row["max_abs"] == pytest.approx(largest)
