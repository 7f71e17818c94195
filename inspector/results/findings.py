"""What checks can find: a stable id each, what it means, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

UNCHECKED = "unchecked"  # last part of the id of a check that could not be made
ANY = "*"  # a check's problem for which no row of the table has the words
# Name of a check -> its id, which stays when the name is worded anew.
CHECK_IDS = {
    "Config and shapes": "shapes",
    "Loading": "loading",
    "Heads and weights": "weights",
    "Left-over tensors": "leftover",
    "Ties": "ties",
    "NaN and infinity": "values",
    "Zero tensors": "zeros",
    "Weight magnitudes": "magnitudes",
    "Quantization scales": "scales",
    "Number types": "dtypes",
    "Tokenizer and rows": "tokenizer",
    "Zero rows": "zero-rows",
    "Duplicated rows": "equal-rows",
    "Under-trained tokens": "undertrained",
    "Padding": "padding",
    "Stopping": "stopping",
    "Pickle formats": "pickles",
    "Files": "files",
}


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of thing that a check can find."""

    id: str
    check: str  # name of the check
    problem: str  # the words that its evidence has for it
    meaning: str
    action: str  # "" where there is nothing to do


LOADING = "Loading"
SHAPES, WEIGHTS, LEFT_OVER, TIES = "Config and shapes", "Heads and weights", "Left-over tensors", "Ties"
VALUES, ZEROS, SIZES, SCALES = "NaN and infinity", "Zero tensors", "Weight magnitudes", "Quantization scales"
DTYPES, TOKENIZER, PADDING, STOPPING, FILES = "Number types", "Tokenizer and rows", "Padding", "Stopping", "Files"
ITS_CONFIG = "Compare config.json with the one that was saved with these weights."
ITS_SOURCE = "Compare the file's digest with its source."
INDEX = "Compare the index with the one where the weights come from."
TABLE = (
    FindingKind(
        "shapes.adapter-alone",
        SHAPES,
        "not a whole model",
        "The files hold an adapter, so there is no whole model to check.",
        "Open the base model with this adapter, or the model that it was merged into.",
    ),
    FindingKind(
        "shapes.config.missing",
        SHAPES,
        "missing",
        "There is no config.json, so nothing says which model the weights are.",
        "Look for the file in the place where the weights come from.",
    ),
    FindingKind(
        "shapes.config.disagrees",
        SHAPES,
        "fewer layers than the weights",
        "config.json states fewer layers, or another vocabulary, than the weights have: layers beyond that never run.",
        ITS_CONFIG,
    ),
    FindingKind(
        "shapes.class.no-library",
        SHAPES,
        "not compared with its class",
        "A library that builds the model's class is not installed, so shapes were not compared with it.",
        "Install the library that the finding names, then check again.",
    ),
    FindingKind(
        "shapes.class.not-built",
        SHAPES,
        "no model can be built",
        "transformers cannot build a model from config.json: the architecture is unknown, or a setting is impossible.",
        ITS_CONFIG,
    ),
    FindingKind(
        "shapes.tensor.empty",
        SHAPES,
        "contains no numbers",
        "Tensors have a size of 0: each process of a sharded training (ZeRO-3) saved its placeholder only.",
        "Gather the weights when you save, or write the model from the sharded checkpoint.",
    ),
    FindingKind(
        "shapes.tensor.twice",
        SHAPES,
        "stored twice",
        "One weight is stored twice, in two layouts, and a loader may take either.",
        "Find out which of the two was trained.",
    ),
    FindingKind(
        "shapes.experts.number",
        SHAPES,
        "another number of experts",
        "A layer has another number of experts than config.json asks for.",
        ITS_CONFIG,
    ),
    FindingKind(
        "shapes.experts.missing",
        SHAPES,
        "not in the file",
        "Tensors of an expert are not in the files, while those of the others are.",
        "Check that every weight file is there.",
    ),
    FindingKind(
        "shapes.experts.more",
        SHAPES,
        "more experts than config.json asks for",
        "The files hold experts beyond the number in config.json.",
        ITS_CONFIG,
    ),
    FindingKind(
        "shapes.tensor.other-shape",
        SHAPES,
        "other shape than config.json asks for",
        "A tensor does not have the shape that the class gives it, so the model cannot be loaded.",
        ITS_CONFIG,
    ),
    FindingKind(
        "loading.quantized.missing",
        LOADING,
        "quantized weight without its scale",
        "A quantized weight lacks the scale, the zero point or absmax that the others have.",
        "Look for the file that has it, or have the weights quantized again.",
    ),
    FindingKind(
        "loading.quantized.other-shape",
        LOADING,
        "scale of another shape",
        "The scale, the zero point or absmax of a quantized weight does not have the shape that its scheme asks for.",
        "Look for the file that has it, or have the weights quantized again.",
    ),
    FindingKind(
        "loading.quantized.left-over",
        LOADING,
        "scale without a quantized weight",
        "A scale, a zero point or absmax belongs to a weight that is not stored as codes.",
        "Compare the tensors with those where the weights come from.",
    ),
    FindingKind(
        "loading.quantized.left-alone",
        LOADING,
        "quantized, and named as not quantized",
        "config.json lists a module as not quantized, and the files hold codes for it: a loader cannot take them.",
        "Compare the list in config.json with that of the program that quantized the weights.",
    ),
    FindingKind(
        "loading.class.other-type",
        LOADING,
        "class of another kind of model",
        "architectures names a class of another model_type than config.json states: loaders go by one or the other.",
        "Find out which of the two the weights are of.",
    ),
    FindingKind(
        "loading.heads.groups",
        LOADING,
        "heads that do not divide into groups",
        "num_key_value_heads does not divide num_attention_heads, so the attention fails.",
        ITS_CONFIG,
    ),
    FindingKind(
        "loading.heads.number",
        LOADING,
        "another number of heads",
        "A matrix has rows for another number of heads than config.json states.",
        ITS_CONFIG,
    ),
    FindingKind(
        "loading.prediction.fewer",
        LOADING,
        "fewer layers for multi-token prediction than declared",
        "config.json declares layers that predict several tokens ahead, and the files lack some or all of them.",
        "If a server is to use them, get them from where the weights come from.",
    ),
    FindingKind(
        "loading.ties.thrown-away",
        LOADING,
        "trained head thrown away",
        "A loader ties the output matrix to the embeddings, although the files hold another one: its numbers are lost.",
        "If the output matrix was trained apart, set tie_word_embeddings to false at every level of config.json.",
    ),
    FindingKind(
        "loading.ties.head-random",
        LOADING,
        "head random",
        "A loader does not tie the output matrix to the embeddings, and finds none in the files: it is random.",
        "If it is meant to be the embeddings, set tie_word_embeddings to true at every level of config.json.",
    ),
    FindingKind(
        "weights.missing",
        WEIGHTS,
        "not in the file",
        "The class has a parameter that the files lack: a loader fills it with random numbers.",
        "Check that every weight file is there, and that config.json names the class that was saved.",
    ),
    FindingKind("weights.head.present", WEIGHTS, "head in the file", "The files hold this head.", ""),
    FindingKind(
        "weights.class.not-stated",
        WEIGHTS,
        "not stated",
        "config.json names no class, so the usual one of its model type was tried.",
        "Add architectures to config.json, if you know the class.",
    ),
    FindingKind(
        "weights.class.unknown",
        WEIGHTS,
        "no class of transformers",
        "config.json names a class that the installed transformers does not have; another one was tried.",
        "Check the name, or install the version of transformers that has this class.",
    ),
    FindingKind(
        "weights.class.by-pipeline",
        WEIGHTS,
        "says what is loaded",
        "modules.json has sentence-transformers load another class than config.json names.",
        "",
    ),
    FindingKind(
        "weights.head.not-loaded",
        WEIGHTS,
        "named, and not loaded",
        "config.json names a class with a head, which sentence-transformers does not load.",
        "",
    ),
    FindingKind(
        "leftover.tensor",
        LEFT_OVER,
        "no place in the class",
        "The files hold a tensor for which the class has no parameter: it is never loaded.",
        "Check that config.json names the class that was saved.",
    ),
    FindingKind(
        "leftover.prediction",
        LEFT_OVER,
        "multi-token prediction",
        "The tensor is of the layers that predict several tokens ahead, which the class leaves out.",
        "",
    ),
    FindingKind(
        "ties.copies-differ",
        TIES,
        "tied, different copies in the file",
        "The names are tied in memory, but the files hold copies of them that differ: a loader keeps only one.",
        "Find the step that wrote the second copy.",
    ),
    FindingKind(
        "ties.declared-only",
        TIES,
        "declared only",
        "config.json or the class declares a tie that the loaded model does not have.",
        "Find the step that broke the tie.",
    ),
    FindingKind(
        "ties.alias-only",
        TIES,
        "alias only",
        "The file stores one tensor under two names, but the loaded model keeps two.",
        "Find the step that broke the tie.",
    ),
    FindingKind(
        "ties.equal-copies",
        TIES,
        "equal copies",
        "Two tensors are equal to the bit and not tied: they take their room twice, and training moves them apart.",
        "If they should be one tensor, tie them and save the model once more.",
    ),
    FindingKind("ties.tied", TIES, "tied", "The names are one tensor, as declared.", ""),
    FindingKind(
        "ties.not-compared",
        TIES,
        "not compared",
        "Copies in the file were not compared, as not all weights are there yet.",
        "",
    ),
    FindingKind("ties.diverged", TIES, "diverged", "The tensors differ, and nothing declares them tied.", ""),
    FindingKind(
        "values.nan",
        VALUES,
        "holds NaN",
        "Numbers of this tensor are NaN, and so is anything computed from them.",
        f"{ITS_SOURCE} If both have them, look for the training step at which the loss became NaN.",
    ),
    FindingKind(
        "values.infinity",
        VALUES,
        "holds infinity",
        "Numbers of this tensor are infinite: an overflow, most often in float16.",
        f"{ITS_SOURCE} If both have them, look for a conversion to float16.",
    ),
    FindingKind(
        "zeros.tensor",
        ZEROS,
        "all zeros",
        "Every number of a weight matrix is 0: the weight was never trained, never written, or is meant to be 0.",
        ITS_SOURCE,
    ),
    FindingKind(
        "zeros.constant-rows",
        ZEROS,
        "rows of one number",
        "Rows of a matrix hold one number in every column: pruned, untrained, or filled with a constant.",
        "",
    ),
    FindingKind(
        "magnitudes.large",
        SIZES,
        "larger than its siblings",
        "A matrix has a much larger root mean square than those with the same name pattern and shape.",
        "",
    ),
    FindingKind(
        "magnitudes.small",
        SIZES,
        "smaller than its siblings",
        "A matrix has a much smaller root mean square than those with the same name pattern and shape.",
        "",
    ),
    FindingKind(
        "scales.zero",
        SCALES,
        "scales of 0",
        "Scales of a quantized weight are 0, so all numbers that they multiply are lost.",
        f"{ITS_SOURCE} If both have the zeros, look at the weights before they were quantized.",
    ),
    FindingKind(
        "scales.negative",
        SCALES,
        "negative scales",
        "Scales of a quantized weight are negative, which most libraries never write.",
        "",
    ),
    FindingKind("dtypes.most", DTYPES, "most weights", "Most weights are stored in this type.", ""),
    FindingKind(
        "dtypes.mixed",
        DTYPES,
        "other than most",
        "Some weights are stored in another floating-point type than most: some programs fail on the mix.",
        "Load the model with one dtype, unless the parts are kept in float32 on purpose.",
    ),
    FindingKind(
        "dtypes.float64",
        DTYPES,
        "double precision",
        "Weights are stored in float64, which takes twice the bytes of float32 and gains nothing.",
        "Load the model with another dtype.",
    ),
    FindingKind("dtypes.no-float", DTYPES, "no floating type", "These tensors are integers or booleans.", ""),
    FindingKind(
        "dtypes.quantized",
        DTYPES,
        "codes",
        "These weights are quantized. As a warning: in a format that is not supported.",
        "If they cannot be read, check a copy in float32, bfloat16 or float16.",
    ),
    FindingKind(
        "tokenizer.unreadable",
        TOKENIZER,
        "cannot be read",
        "The tokenizer's files cannot be read.",
        "Compare them with their source.",
    ),
    FindingKind(
        "tokenizer.no-row",
        TOKENIZER,
        "no row",
        "The tokenizer has a token whose id is past the last row of the embedding matrix: a text with it fails.",
        "Use the tokenizer that was saved with these weights.",
    ),
    FindingKind(
        "tokenizer.spare-rows",
        TOKENIZER,
        "more rows than ids",
        "The embedding matrix has more rows than the tokenizer has ids.",
        "As a warning: check that this is the tokenizer that the model was trained with.",
    ),
    FindingKind(
        "tokenizer.unreachable",
        TOKENIZER,
        "tokens that no text gives",
        "The tokenizer never returns these tokens, whatever the text.",
        "",
    ),
    FindingKind(
        "zero-rows.token",
        "Zero rows",
        "row of zeros",
        "The embedding row of a token is 0 throughout.",
        "If the token is used, look for the step that wrote the zeros.",
    ),
    FindingKind(
        "equal-rows.tokens",
        "Duplicated rows",
        "equal to the bit",
        "Several tokens have one embedding row, so the model cannot tell them apart.",
        "If the tokens are used, look for the step that copied the row.",
    ),
    FindingKind(
        "undertrained.matrix",
        "Under-trained tokens",
        "looks never trained",
        "The whole embedding matrix looks as it was initialized.",
        "Check that the weights were loaded when the checkpoint was saved.",
    ),
    FindingKind(
        "undertrained.token",
        "Under-trained tokens",
        "looks under-trained",
        "The row of a token looks as if training rarely changed it.",
        "Check that the tokenizer is the one that the model was trained with.",
    ),
    FindingKind(
        "padding.id.negative",
        PADDING,
        "counts from the end",
        "pad_token_id is negative: torch counts it from the last row.",
        "Name the padding token's own id.",
    ),
    FindingKind(
        "padding.id.no-row",
        PADDING,
        "no such row",
        "pad_token_id is no row of the embedding matrix: a padded batch fails.",
        "Name the padding token's own id.",
    ),
    FindingKind(
        "padding.token.no-row",
        PADDING,
        "padding token without a row",
        "The tokenizer's padding token is past the last row of the embedding matrix: a padded batch fails.",
        "Choose a padding token that has a row.",
    ),
    FindingKind(
        "padding.disagree",
        PADDING,
        "config.json and tokenizer disagree",
        "config.json and the tokenizer name different padding ids.",
        "Let both name one id.",
    ),
    FindingKind(
        "padding.token.none",
        PADDING,
        "no padding token in the tokenizer",
        "config.json names a padding id, but the tokenizer has no padding token.",
        "Name a padding token before you pad.",
    ),
    FindingKind(
        "padding.config.none",
        PADDING,
        "config.json names no padding",
        "The tokenizer has a padding token, but config.json names none.",
        "",
    ),
    FindingKind(
        "padding.row.not-finite",
        PADDING,
        "padding row not finite",
        "The padding token's row contains NaN or infinity.",
        "Find the step that wrote it.",
    ),
    FindingKind("padding.row", PADDING, "padding row", "The padding token's row, and its norm.", ""),
    FindingKind(
        "stopping.goes-on",
        STOPPING,
        "does not stop generate()",
        "A token that ends an answer or a text is not one at which generate() stops.",
        "Add its id to eos_token_id of generation_config.json.",
    ),
    FindingKind(
        "stopping.bos-twice",
        STOPPING,
        "added twice",
        "The chat template and the tokenizer both add the token that begins a text.",
        "Tokenize a rendered conversation with add_special_tokens=False.",
    ),
    FindingKind(
        "stopping.two-ids",
        STOPPING,
        "two ids",
        "Two files give different ids for one role or one token.",
        "Find out which one the model was trained with, and let the files agree.",
    ),
    FindingKind(
        "stopping.two-tokens",
        STOPPING,
        "two tokens",
        "Two files name different tokens for one role.",
        "Find out which one the model was trained with, and let the files agree.",
    ),
    FindingKind(
        "stopping.two-templates",
        STOPPING,
        "two chat templates",
        "Two files hold chat templates that differ.",
        "Find out which one the model was trained with, and let the files agree.",
    ),
    FindingKind(
        "stopping.padding-ends",
        STOPPING,
        "padding ends a text",
        "The padding token is also one that ends a text: labels that mask padding never teach the model to stop.",
        "",
    ),
    FindingKind(
        "pickles.file",
        "Pickle formats",
        "pickle",
        "A weight file is a pickle: a program that unpickles a file from a stranger runs the stranger's code.",
        "Write a copy as safetensors into another folder.",
    ),
    FindingKind(
        "loading.index.unlisted-shard",
        FILES,
        "a shard that the index does not list",
        "A weight file beside the index is not listed in it, so loaders do not read it.",
        "Get the index from where the weights come from.",
    ),
    FindingKind(
        "loading.index.absent-shard",
        FILES,
        "a shard that is not there",
        "The index lists a file that is not in the folder.",
        "Get the shard from where the others come from.",
    ),
    FindingKind(
        "loading.file.not-read",
        FILES,
        "a weight file that is not read",
        "A weight file lies beside the ones that loaders read.",
        "If it belongs to the model, get the index that lists it.",
    ),
    FindingKind(
        "loading.index.missing",
        FILES,
        "a tensor of the index that no shard holds",
        "The index lists a tensor that no shard has.",
        INDEX,
    ),
    FindingKind(
        "loading.index.misplaced",
        FILES,
        "a tensor in another shard than the index says",
        "The index lists a tensor in another shard than the one that has it.",
        INDEX,
    ),
    FindingKind(
        "loading.index.not-listed",
        FILES,
        "a tensor that the index does not list",
        "A shard holds a tensor that the index does not list.",
        "",
    ),
    FindingKind(
        "loading.index.copies", FILES, "a tensor in several shards", "Several shards hold a tensor of one name.", INDEX
    ),
    FindingKind(
        "loading.index.copies-apart",
        FILES,
        "a tensor in several shards, of which loaders take different ones",
        "Several shards hold a tensor of one name, and which of them is loaded depends on the loader.",
        "Find out which copy was trained.",
    ),
    FindingKind(
        "loading.index.no-metadata",
        FILES,
        "an index without metadata",
        "The index has no metadata, without which some loaders fail.",
        'Add "metadata": {"total_size": …} to the index.',
    ),
    FindingKind(
        "loading.index.total",
        FILES,
        "another total size in the index",
        "The index states another total size than its tensors have.",
        "",
    ),
    FindingKind(
        "files.no-model",
        FILES,
        "a file of which no model is built",
        "A file holds something from which no model is built here.",
        "",
    ),
    FindingKind(
        "files.oversized",
        FILES,
        "oversized",
        "A file without weights is larger than the largest vocabularies.",
        "Look at what it holds.",
    ),
    FindingKind(
        "files.holes",
        FILES,
        "holes in the file",
        "Parts of a file were never written to disk and read as zeros: a download that was cut off.",
        ITS_SOURCE,
    ),
    FindingKind(
        "files.unexplained",
        FILES,
        "more bytes than its tensors take",
        "A weight file is larger than its tensors explain: optimizer state, or slices of larger tensors.",
        "Compare the file's size with its source.",
    ),
    FindingKind(
        "files.two-sets",
        FILES,
        "There are two sets of weights",
        "Two sets of weight files lie in one folder, of which one is read.",
        "Give each set a folder of its own, and compare the two.",
    ),
    FindingKind(
        "files.code",
        FILES,
        "The checkpoint contains Python files",
        "The checkpoint comes with Python files, which another program may run (trust_remote_code).",
        "Read the code before you let another program run it.",
    ),
    FindingKind(
        "files.auto-map",
        FILES,
        "config.json refers to custom code (auto_map), which never runs here",
        "config.json has loaders run code that comes with the checkpoint (trust_remote_code).",
        "Read the code before you let another program run it.",
    ),
    FindingKind(
        "files.noted", FILES, ANY, "Something else that was noted when the files were read, which the finding says.", ""
    ),
)
IDS = {(each.check, each.problem): each.id for each in TABLE}
UNJUDGED = tuple(f"{check}.{UNCHECKED}" for check in CHECK_IDS.values())
KNOWN = frozenset((*UNJUDGED, *(each.id for each in TABLE)))


def id_of(check: str, problem: str) -> str:
    """The id of what a check found.

    Raises:
        KeyError: If the table has no row for it: add one.
    """
    found = IDS.get((check, problem))
    return IDS[check, ANY] if found is None else found
