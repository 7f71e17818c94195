"""What the checks of stored numbers say: NaN and infinity, tensors of zeros, number types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.analyses.checks.words import such_as
from inspector.text import plural, shape_text, some

EXAMPLES = 3  # tensors that are named
IN_TRAINING = (
    "Compare the file's digest with the source. If they differ, copy the file again. If the source has them, too, look "
    "for the step of the training at which the loss became NaN. The usual fixes are a lower learning rate, gradient "
    "clipping, or bfloat16 instead of float16."
)
IN_QUANTIZING = (
    "Compare the file's digest with the source. If they differ, copy the file again. If the source has them, too, "
    "check that the float weights are finite before you quantize those once more."
)
ZEROS_STEP = (
    "Compare the file's digest with the source. If they differ, copy the file again. If the source has the zeros, too, "
    "the weights were never trained or never written, or they are meant to be zero, as a new adapter's are."
)
SCALES_IN_BLOCKS = "The scales of a GGUF file are a part of its blocks, where 0 and negative numbers are usual."
NO_SCALES = "The files contain no quantization scales that could be 0 or negative."
SCALES_STEP = (
    "Compare the file's digest with the source. If they differ, copy the file again. If the source has the zeros, too, "
    "look at the weights before they were quantized: a block may be all zeros, or too small for the scale's type."
)
UNREAD_SCALES = "The scales of the quantized weights are in a format that is not supported, so they were not checked."
NOT_READ_HERE = "quantized in a format that is not supported"
ONLY_TABLES = "The files contain only constant tables and no weights."
ONE_DTYPE = (
    "Some models keep parts in float32 on purpose (norms, routers). Otherwise, load the model with one dtype: "
    "from_pretrained(folder, dtype=…)."
)


def not_finite(count: int, what: str, read: int, numbers: int, *, first: Sequence[int] | None, weight: str) -> str:
    """How many numbers of a tensor are NaN or infinite; `first` is a place, `weight` what is made of its codes."""
    of = "numbers" if read == numbers else "numbers read"
    where = "" if first is None else f", the first at {list(first)}"
    where += f", used to dequantize {weight}" if weight else ""
    return f"{count:,} of {read:,} {of} are {what}{where}."


def all_finite(read: int, numbers: int, tensors: int, *, unread: int) -> str:
    """Nothing that was read is NaN or infinite; `unread` tensors are codes that cannot be read."""
    of = f"{numbers:,} numbers of {plural(tensors, 'tensor')}"
    rest = f" {plural(unread, 'tensor')} of quantized weights could not be read." if unread else ""
    if read == numbers:
        return f"All {of} were read, and {'every one' if unread else 'every weight'} is finite.{rest}"
    return f"A sample of {read:,} of the {of} was read, and every number in it is finite.{rest}"


def unread(count: int, first: str, dtype: str, beside: str) -> str:
    """Some weights are stored as codes that nobody here can read; `beside`: a tensor that belongs to the first."""
    weights = plural(count, "weight is", "weights are")
    scales = f", with {beside} beside it" if beside else ""
    return (
        f"{weights} quantized in a format that this tool does not support, so nothing is computed from them "
        f"{such_as(count, f'{first}, {dtype}{scales}')}."
    )


def some_not_finite(tensors: int, first: str, count: int, read: int) -> str:
    """Some tensors hold NaN or infinity."""
    return (
        f"{plural(tensors, 'tensor holds', 'tensors hold')} NaN or infinity, {count:,} of {read:,} numbers "
        f"{such_as(tensors, first)}: anything computed from them is not a number."
    )


def zero_tensor(shape: Sequence[int], read: int, numbers: int) -> str:
    """A tensor of zeros, as far as it was read."""
    which = "every number" if read == numbers else f"every one of {read:,} numbers read"
    return f"{shape_text(shape)}, and {which} is 0."


def zero_weight(shape: Sequence[int], scheme: str, rows: int | None) -> str:
    """A quantized weight of zeros, of which all rows or the first ones were read."""
    return f"{shape_text(shape)}, {scheme}, and every weight{f' of its first {rows} rows' if rows else ''} is 0."


def zero_factor(shape: Sequence[int], scheme: str, role: str, read: int, numbers: int) -> str:
    """A quantized weight of zeros, because its codes or its scales are, as far as they were read."""
    if read == numbers:
        return zero_weight(shape, scheme, None)
    return f"{shape_text(shape)}, {scheme}, and every one of {read:,} {role}{'' if role == 'codes' else 's'} read is 0."


def no_zeros(*, whole: bool) -> str:
    """No matrix is all zeros."""
    return f"No weight matrix{'' if whole else ' in the sample'} is all zeros."


def constant_rows(count: int, rows: int, *, whole: bool) -> str:
    """Rows of a matrix that hold one number all over."""
    of = f"{rows:,} rows" if whole else f"the sampled ones of {rows:,} rows"
    verb = "holds" if count == 1 else "hold"
    return f"{count:,} of {of} {verb} the same number in every column: pruned, untrained, or filled with a constant."


def some_constant(matrices: int) -> tuple[str, ...]:
    """A further sentence about matrices with such rows, if there are any."""
    return (f"{plural(matrices, 'matrix has', 'matrices have')} rows of one number.",) if matrices else ()


def zeros(count: int, first: str) -> str:
    """Some matrices are all zeros."""
    matrices = plural(count, "weight matrix is", "weight matrices are")
    return f"{matrices} all zeros {such_as(count, first)}: the product with any input is zero."


def zero_scales(count: int, read: int, numbers: int, weight: str, *, biased: bool) -> str:
    """How many scales of a quantized weight are 0, and what that makes of its codes."""
    lost = "all numbers of a group equal its bias" if biased else "all numbers that a scale of 0 multiplies are 0"
    return f"{_of_scales(count, read, numbers)} 0, used to dequantize {weight}: {lost}."


def negative_scales(count: int, read: int, numbers: int, weight: str) -> str:
    """How many scales of a quantized weight are negative."""
    return f"{_of_scales(count, read, numbers)} negative, used to dequantize {weight}: most libraries write none."


def _of_scales(count: int, read: int, numbers: int) -> str:
    return f"{count:,} of {read:,} scales{'' if read == numbers else ' read'} {'is' if count == 1 else 'are'}"


def scales(zeros: int, negative: int, read: int, numbers: int, tensors: int) -> str:
    """What was found in all scales of quantized weights."""
    which = plural(numbers, "scale") if read == numbers else f"A sample of {read:,} of the {numbers:,} scales"
    counts = ((zeros, "0"), (negative, "negative"))
    found = [f"{count:,} {'is' if count == 1 else 'are'} {what}" for count, what in counts if count]
    said = " and ".join(found) or "none is 0 or negative"
    return f"{which} in {plural(tensors, 'tensor')} of quantized weights: {said}."


def kept_in(tensors: Sequence[str], numbers: int) -> str:
    """What is kept in one type."""
    return f"{plural(numbers, 'number')} in {plural(len(tensors), 'tensor')}: {some(tensors, EXAMPLES)}."


def kept_as(dtypes: Sequence[str], ways: Mapping[str, int]) -> str:
    """In which types and quantized ways (way -> weights) all is kept."""
    kinds = " and ".join(dtypes)
    if not ways:
        return f"All weights are stored as {kinds}."
    said = ", ".join(f"{plural(weights, 'weight')} as {way}" for way, weights in ways.items())
    return f"Quantized: {said}{f'; all others are stored as {kinds}' if kinds else ''}."


def mixed(floats: Sequence[str]) -> str:
    """Weights are kept in several floating types, or in a needlessly wide one."""
    if len(floats) == 1:
        return f"The weights are stored as {floats[0]}, which takes twice the bytes of float32 and gains nothing."
    return (
        f"The weights are stored in {len(floats)} floating-point types, {', '.join(floats)}: from_pretrained converts "
        "them to one, but other programs may fail on the mix."
    )
