"""The questions of the field, and the view that answers each: a page, a demo, and its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

BERT, GPT2, ADAPTER = "demo-bert", "demo-gpt2", "demo-gpt2-adapter"
GLASS = "he drank a glass of [MASK]."
MONTH = "the second month of the [MASK]."


@dataclass(frozen=True, slots=True)
class TourQuestion:
    """A question, and where it is answered."""

    asked: str
    look: str  # what to look at on the page, in a sentence
    page: str  # slug
    checkpoint: str
    inputs: dict[str, str] = field(default_factory=dict)  # of the page, as in the address

    @property
    def query(self) -> dict[str, str]:
        """Parameters of the address."""
        return {"checkpoint": self.checkpoint, **self.inputs}


QUESTIONS: dict[str, tuple[TourQuestion, ...]] = {
    "Embeddings and padding": (
        TourQuestion(
            "Why is BERT's [PAD] vector not zero?",
            "padding_idx blocks only the gradient through the look-up; a tied output layer pushes the same row at "
            "every step.",
            "padding",
            BERT,
        ),
        TourQuestion(
            "Which tokens lie close to “king”?",
            "Neighbors are exact and measured in the original space; the map beside them is only a picture.",
            "embeddings",
            BERT,
            {"token": "king"},
        ),
        TourQuestion(
            "Can I believe a UMAP picture?",
            "Colors show how many of each token's true neighbors the picture keeps.",
            "embeddings",
            BERT,
            {"method": "umap", "color": "true neighbors kept"},
        ),
        TourQuestion(
            "Which tokens were hardly ever trained?",
            "Rows that still look like the unused ones stand out; the table lists them.",
            "embeddings",
            BERT,
            {"color": "under-training score"},
        ),
        TourQuestion(
            "Why does a model never stop?",
            "An answer ends with the token that the chat template puts there; generate() must stop at its id.",
            "embeddings",
            GPT2,
        ),
    ),
    "Tied weights": (
        TourQuestion(
            "Why is GPT-2's lm_head not among the parameters?",
            "lm_head.weight and wte.weight are two names of one tensor, and a parameter is listed once.",
            "sharing",
            GPT2,
            {"tab": "Why"},
        ),
        TourQuestion(
            "What breaks when I clone, resize or save a tied model?",
            "Each change is made to a copy in memory; the edges show which ties hold.",
            "sharing",
            BERT,
            {"change": "resize"},
        ),
        TourQuestion(
            "Which classes is BertForPreTraining made of, and what does it return?",
            "The module tree with every class's parents, and the output's fields and shapes.",
            "classes",
            BERT,
        ),
    ),
    "From a hidden state to a token": (
        TourQuestion(
            "How does the masked-LM head turn a hidden state into a token?",
            "Dot product, bias, the head's transform, true logits: what each step does to a token.",
            "lens",
            BERT,
            {"text": MONTH, "pins": "year"},
        ),
        TourQuestion(
            "Is the most likely token the one with the highest cosine?",
            "Often not: norms and the bias matter, too. Compare the steps, and direction and length of each token.",
            "lens",
            BERT,
            {"text": MONTH, "rung": "cosine", "tab": "Geometry"},
        ),
        TourQuestion(
            "At which layer does the model know the answer?",
            "Follow the rank of the pinned token from layer to layer.",
            "lens",
            BERT,
            {"text": MONTH, "pins": "year", "shade": "rank of a pinned token"},
        ),
    ),
    "Predictions": (
        TourQuestion(
            "What does BERT put in the gap?",
            "Type, or click any token to mask it: the answers appear at once.",
            "masked_lm",
            BERT,
            {"text": GLASS},
        ),
        TourQuestion(
            "How plausible is every token in its place?",
            "Each token is masked in turn and colored by its surprisal.",
            "masked_lm",
            BERT,
            {"text": "the second month of the year.", "view": "Plausibility"},
        ),
        TourQuestion(
            "How surprising is a text to GPT-2?",
            "Perplexity, and each token predicted from those before it.",
            "masked_lm",
            GPT2,
            {"text": "genus Salix: willows and poplars."},
        ),
        TourQuestion(
            "What does one word change?",
            "Two sentences compared over the whole vocabulary: likelihood versus difference.",
            "masked_lm",
            BERT,
            {"text": "the [MASK] of a country.", "view": "Two sentences", "second": "the [MASK] of a river."},
        ),
        TourQuestion(
            "Why are these two sentences similar?",
            "The score is the sum of what each pair of tokens brings: the darkest cells are the reason.",
            "similarity",
            BERT,
            {"texts": "a dog is an animal.\na cat is an animal.", "pooling": "mean"},
        ),
        TourQuestion(
            "How does GPT-2 continue a text?",
            "The distribution of the next token, and a short generation.",
            "heads",
            GPT2,
            {"text": "genus Salix: willows and"},
        ),
    ),
    "Training": (
        TourQuestion(
            "What must BERT predict in pre-training, with masks (80/10/10) and the next sentence?",
            "The labels, with -100 where there is nothing to predict, and each part of the loss.",
            "heads",
            BERT,
            {"tab": "Pre-training objective"},
        ),
        TourQuestion(
            "Which parameters does AdamW decay, and how does the learning rate change?",
            "The groups that transformers' Trainer forms, and the curve of every schedule.",
            "training",
            BERT,
        ),
        TourQuestion(
            "How does [PAD] grow during BERT's training?",
            "In ten snapshots of a run, its row starts at zero and soon is longer than most: its output side is "
            "trained at every step.",
            "snapshots",
            BERT,
        ),
    ),
    "Two checkpoints and adapters": (
        TourQuestion(
            "What do two checkpoints have in common?",
            "Tensors and ties are matched by name, rows by their text; of two versions of one model, the heat map "
            "shows which layers changed.",
            "compare",
            BERT,
            {"other": GPT2},
        ),
        TourQuestion(
            "Which base is this?",
            "Which sampled matrices are equal, how much of the other checkpoint is left in the rest, and of which rank "
            "the change is.",
            "compare",
            "demo-run-checkpoint-1000",
            {"other": "demo-run-checkpoint-800", "tab": "Base"},
        ),
        TourQuestion(
            "What did quantization cost, layer by layer?",
            "Compare the original with its GGUF file, or another quantized copy: the error of each tensor, by layer "
            "and kind.",
            "compare",
            BERT,
        ),
        TourQuestion(
            "Why does my merged model answer like the base?",
            "Is the change missing, or lost in rounding to 16 bits? How much an adapter changes each weight, and what "
            "of it a merge into its base keeps.",
            "overview",
            ADAPTER,
            {"base": GPT2},
        ),
    ),
    "Before you rely on it": (
        TourQuestion(
            "Will it load, and as what?",
            "What the loader makes of every tensor of the files, by pattern of names: loaded, renamed, fused, dropped, "
            "or made up.",
            "checks",
            GPT2,
            {"tab": "Loading"},
        ),
        TourQuestion(
            "Is this checkpoint complete and safe?",
            "Every check with its evidence, such as ties, heads, NaN, tokenizer and files, and what to do.",
            "checks",
            BERT,
        ),
        TourQuestion(
            "Was my adapter really merged?",
            "Its merge into the base is replayed: each tensor is merged, left out, merged twice, or of another base.",
            "merge",
            BERT,
        ),
    ),
}
