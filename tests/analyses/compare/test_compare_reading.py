"""What of two checkpoints is read: headers alone, a sample, numbers up to the first difference, other strides."""

from __future__ import annotations

import math

import pytest
import torch

from inspector.analyses.compare import compute_streams
from inspector.analyses.compare.compute_parts import StoredTensor, Sums
from inspector.analyses.compare.compute_streams import find_differences
from inspector.analyses.compare.compute_sums import compare_numbers
from inspector.analyses.compare.words import UNREAD
from tests.analyses.compare.compare_truth import BIAS, EMBEDDING, ask, by_name, truth
from tests.conftest import silent
from tests.families import random_model


def same_as_the_whole(sums: Sums, one: torch.Tensor, other: torch.Tensor) -> None:
    relative, cosine, largest = truth(one, other)
    assert sums.count == one.numel()
    assert sums.relative_change == pytest.approx(relative, rel=1e-12)
    assert sums.cosine == pytest.approx(cosine, abs=1e-12)
    assert sums.max_abs == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("piece", [12, 1_000, 1 << 24])
def test_pieces_give_what_the_whole_gives(open_model, piece):
    first = open_model("BertForMaskedLM")
    second = open_model("GPT2LMHeadModel")
    one = next(t for t in first.manifest.tensors if t.name == EMBEDDING)
    other = next(t for t in second.manifest.tensors if t.name == "transformer.wte.weight")
    assert one.shape == other.shape
    pair = StoredTensor(first.manifest, one), StoredTensor(second.manifest, other)
    (found,) = find_differences([pair], silent, piece=piece)
    same_as_the_whole(found.sums, first.embedding_matrix(), second.state["transformer.wte.weight"])


@pytest.mark.parametrize("span", [7, 100, 1 << 15])
def test_spans_give_what_the_whole_gives(span):
    one, other = torch.randn(2, 1_920, generator=torch.Generator().manual_seed(0))
    other[500:800] = one[500:800]  # of which some spans are equal all over
    same_as_the_whole(compare_numbers(one, other, span=span).sums, one, other)


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
    monkeypatch.setattr(compute_streams, "StoredReader", refuse)
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


MANY = 400_000  # numbers, of which a sample reads 1 MB


def test_a_sample_sees_what_is_everywhere_and_says_what_it_cannot_see(saved):
    model, generator = random_model("BertForMaskedLM"), torch.Generator().manual_seed(0)
    numbers = torch.randn(MANY, generator=generator)
    moved = numbers + 0.1 * torch.randn(MANY, generator=generator)
    one_number = numbers.clone()
    one_number[1] += 1  # before the first page
    whole = torch.arange(MANY)
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
    assert rows["moved"]["note"] == "from a sample of 262,144 of 400,000 numbers"
    assert rows["whole"]["note"] == "from a sample of 131,072 of 400,000 numbers"
    assert rows["cast"]["note"].startswith(
        "from a sample of 262,144 of 400,000 numbers; exactly what rounding to bfloat16"
    )
    assert rows["short"]["note"] == ""
    relative, cosine, largest = truth(numbers, moved)
    assert rows["moved"]["relative_change"] == pytest.approx(relative, rel=0.01)
    assert rows["moved"]["cosine"] == pytest.approx(cosine, abs=0.001)
    assert 0 < rows["moved"]["max_abs"] <= largest
    assert rows["moved"]["norm"] == pytest.approx(numbers.norm().item(), rel=0.01)
    every = ask(*two)
    assert result.overall["relative_change"] == pytest.approx(every.overall["relative_change"], rel=0.01)
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
def test_a_sample_of_codes_is_dequantized(shift, saved):
    model = random_model("BertForMaskedLM")
    codes = torch.randn(2_048, 1_024, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
    other = (codes.view(torch.uint8) + shift).view(torch.float8_e4m3fn)  # 8: each is twice as large
    scale = torch.full((16, 8), 0.5)
    result = ask(
        *(
            saved(model, name, lambda all_, x=x: all_ | {"x.weight": x, "x.weight_scale_inv": scale})
            for name, x in (("a", codes), ("b", other))
        ),
        values="sample",
    )
    row = by_name(result)["x.weight"]
    assert row["status"] == ("changed" if shift else "equal in sample")
    assert row["note"] == "from a sample of 1,048,576 of 2,097,152 numbers"
    assert row["relative_change"] == (pytest.approx(1.0, rel=0.05) if shift else 0)


def test_a_sample_of_old_files_with_other_strides_takes_the_same_places(tmp_path, open_path):
    torch.manual_seed(0)
    matrix = torch.randn(32_768, 64)
    straight, turned = tmp_path / "a.bin", tmp_path / "b.bin"
    torch.save({"weight": matrix}, straight)
    torch.save({"weight": (2 * matrix).T.contiguous().T}, turned)
    (row,) = ask(open_path(straight), open_path(turned), values="sample").tensors.to_dict("records")
    assert (row["status"], row["note"]) == ("changed", "from a sample of 1,048,576 of 2,097,152 numbers")
    assert (row["relative_change"], row["cosine"]) == (pytest.approx(1.0), pytest.approx(1.0))


@pytest.mark.parametrize(("changed", "whole"), [(0, False), (500_000, True), (None, True)])
def test_whole_numbers_end_at_the_first_difference(changed, whole, saved, monkeypatch):
    numbers = torch.arange(1_000_000)
    other = numbers.clone()
    if changed is not None:
        other[changed] = -1
    compared = []
    compare_bits = compute_streams.compare_bits
    monkeypatch.setattr(compute_streams, "compare_bits", lambda a, b: compared.append(len(a)) or compare_bits(a, b))
    model = random_model("BertForMaskedLM")
    opened = [saved(model, name, lambda all_, x=x: all_ | {"x": x}) for name, x in (("a", numbers), ("b", other))]
    one, two = (StoredTensor(each.manifest, each.manifest.by_name["x"]) for each in opened)
    (found,) = find_differences([(one, two)], silent, piece=1 << 16)
    assert found.equal == (changed is None)
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
