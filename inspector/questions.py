"""The library's methods: one per question of the catalog.

Written by `python -m tools.questions`: do not edit.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from inspector.request import checked_names

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.analyses.adapter.result import Adapter
    from inspector.analyses.base.result import Relation
    from inspector.analyses.checks.result import Checks
    from inspector.analyses.classes.result import ModelClasses
    from inspector.analyses.compare.result import Comparison
    from inspector.analyses.contrast.result import Contrast
    from inspector.analyses.embeddings.result import Embeddings
    from inspector.analyses.experts.result import MixtureExperts
    from inspector.analyses.heads.result import HeadAnswer
    from inspector.analyses.histogram.result import Histogram
    from inspector.analyses.ladder.result import Climb
    from inspector.analyses.lens.result import Lens
    from inspector.analyses.masked_lm.result import Prediction
    from inspector.analyses.merge_proof.result import MergeProof
    from inspector.analyses.overview.result import Overview
    from inspector.analyses.padding.result import Padding
    from inspector.analyses.plausibility.result import Plausibility
    from inspector.analyses.pretraining.result import Pretraining
    from inspector.analyses.sharing.result import Sharing
    from inspector.analyses.similarity.result import Similarity
    from inspector.analyses.snapshots.result import Vitals
    from inspector.analyses.special_tokens.result import SpecialTokens
    from inspector.analyses.tokenization.result import Tokenization
    from inspector.analyses.training.result import TrainingPlan
    from inspector.analyses.vocabulary_map.result import Projection
    from inspector.analyses.what_if.result import WhatIf
    from inspector.api import Answer, Checkpoint
    from inspector.placing import Device, Dtype
    from inspector.results.placement import Placement

    class OverviewAnswer(Answer, Overview):
        """What `overview` returns."""

    class AdapterAnswer(Answer, Adapter):
        """What `adapter` returns."""

    class HistogramAnswer(Answer, Histogram):
        """What `histogram` returns."""

    class SharingAnswer(Answer, Sharing):
        """What `sharing` returns."""

    class WhatifAnswer(Answer, WhatIf):
        """What `whatif` returns."""

    class ClassesAnswer(Answer, ModelClasses):
        """What `classes` returns."""

    class ExpertsAnswer(Answer, MixtureExperts):
        """What `experts` returns."""

    class EmbeddingsAnswer(Answer, Embeddings):
        """What `embeddings` returns."""

    class ProjectAnswer(Answer, Projection):
        """What `project` returns."""

    class TokensAnswer(Answer, SpecialTokens):
        """What `tokens` returns."""

    class PaddingAnswer(Answer, Padding):
        """What `padding` returns."""

    class LensAnswer(Answer, Lens):
        """What `lens` returns."""

    class PlacementAnswer(Answer, Placement):
        """What `placement` returns."""

    class LadderAnswer(Answer, Climb):
        """What `ladder` returns."""

    class PredictAnswer(Answer, Prediction):
        """What `predict` returns."""

    class PlausibilityAnswer(Answer, Plausibility):
        """What `plausibility` returns."""

    class ContrastAnswer(Answer, Contrast):
        """What `contrast` returns."""

    class SimilarityAnswer(Answer, Similarity):
        """What `similarity` returns."""

    class HeadsAnswer(Answer, HeadAnswer):
        """What `heads` returns."""

    class PretrainAnswer(Answer, Pretraining):
        """What `pretrain` returns."""

    class TokenizeAnswer(Answer, Tokenization):
        """What `tokenize` returns."""

    class TrainingAnswer(Answer, TrainingPlan):
        """What `training` returns."""

    class CompareAnswer(Answer, Comparison):
        """What `compare` returns."""

    class BaseAnswer(Answer, Relation):
        """What `base` returns."""

    class VerifyMergeAnswer(Answer, MergeProof):
        """What `verify-merge` returns."""

    class VitalsAnswer(Answer, Vitals):
        """What `vitals` returns."""

    class CheckAnswer(Answer, Checks):
        """What `check` returns."""


class Questions:
    """A checkpoint's methods."""

    @abstractmethod
    def ask(self, verb: str, **options: Any) -> Any:
        """Answer one question."""

    @checked_names
    def overview(self, hash_files: bool = False, tensors: bool = False, find: str = "") -> OverviewAnswer:
        """What is in this checkpoint?

        Args:
            hash_files: Compute the SHA-256 of every file, which reads every byte.
            tensors: List every tensor: name, shape, dtype, size, file and ties.
            find: List only tensors with this text in the name, shape, dtype or file; * in a name, as in
                layers.*.bias, matches any number.
        """
        return self.ask("overview", hash_files=hash_files, tensors=tensors, find=find)

    @checked_names
    def adapter(self, base: str | Path | Checkpoint = "") -> AdapterAnswer:
        """What does an adapter change, and what of it will a merge keep?

        Args:
            base: Model that the adapter was trained on, to measure what of the change a merge keeps.
        """
        return self.ask("adapter", base=base)

    @checked_names
    def histogram(self, tensor: str = "") -> HistogramAnswer:
        """How are the numbers of a tensor distributed?

        Args:
            tensor: Name of the tensor, as `overview --tensors` lists it; default: the largest.
        """
        return self.ask("histogram", tensor=tensor)

    @checked_names
    def sharing(self) -> SharingAnswer:
        """Which parameters share memory?"""
        return self.ask("sharing")

    @checked_names
    def whatif(
        self,
        change: str = "untie",
        text: str = "Paris is the capital and largest city of France.",
        steps: int = 1,
        learning_rate: float = 5e-05,
        optimizer: str = "adamw",
    ) -> WhatifAnswer:
        """Which ties break when the model is changed?

        Args:
            change: Change to make to a copy of the model (untie, clone, resize, half, reload).
            text: Text to train the copy on; leave it empty for no training.
            steps: Number of updates; 0 for no training (between 0 and 20).
            learning_rate: Learning rate of every update (above 0 and at most 1).
            optimizer: Optimizer of the copy, without weight decay or momentum (adamw, sgd).
        """
        return self.ask(
            "whatif", change=change, text=text, steps=steps, learning_rate=learning_rate, optimizer=optimizer
        )

    @checked_names
    def classes(self, text: str = "the capital and largest city of France.") -> ClassesAnswer:
        """Which classes is this model made of, and what does it return?

        Args:
            text: Input text.
        """
        return self.ask("classes", text=text)

    @checked_names
    def experts(self, text: str = "", device: Device = "auto", dtype: Dtype = "auto") -> ExpertsAnswer:
        """Does every expert differ, and how often does a text use each?

        Args:
            text: Text whose tokens are counted for each expert; without it no model runs.
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask("experts", text=text, device=device, dtype=dtype)

    @checked_names
    def embeddings(self, token: str | None = None, k: int = 10, metric: str = "cosine") -> EmbeddingsAnswer:
        """What do the static embeddings look like?

        Args:
            token: Token whose nearest neighbors are listed, as text or "id 37".
            k: Neighbors to list (between 1 and 1,000).
            metric: How neighbors in the original space are measured (cosine, dot, euclidean).
        """
        return self.ask("embeddings", token=token, k=k, metric=metric)

    @checked_names
    def project(
        self,
        method: str = "pca",
        dimensions: int = 2,
        neighbors: int = 15,
        metric: str = "cosine",
        seed: int = 0,
        stability: bool = False,
        trust: bool = False,
        implementation: str = "inspector",
        min_dist: float = 0.1,
        spread: float = 1.0,
        densmap: bool = False,
    ) -> ProjectAnswer:
        """Which tokens lie close together on a map?

        Args:
            method: pca: the directions of largest variance, computed at once; umap: keeps neighbors together, takes
                longer (pca, umap).
            dimensions: Dimensions of the map (between 2 and 3).
            neighbors: UMAP's n_neighbors: small values show detail, large values the overall structure (between 2
                and 200).
            metric: How true neighbors are measured (cosine, euclidean).
            seed: Random seed for UMAP (between 0 and 4,294,967,295).
            stability: Compute the UMAP again with the next seed, and measure how many neighbors stay together;
                takes twice as long.
            trust: Judge every row of a large vocabulary, not just a sample.
            implementation: UMAP implementation: the inspector's own, or umap-learn, which takes longer (inspector,
                umap-learn).
            min_dist: umap-learn's min_dist: how close points may lie on the map (between 0 and 10).
            spread: umap-learn's spread: how far apart clusters lie (between 0.1 and 10).
            densmap: umap-learn's densMAP: also keeps local densities.
        """
        return self.ask(
            "project",
            method=method,
            dimensions=dimensions,
            neighbors=neighbors,
            metric=metric,
            seed=seed,
            stability=stability,
            trust=trust,
            implementation=implementation,
            min_dist=min_dist,
            spread=spread,
            densmap=densmap,
        )

    @checked_names
    def tokens(self) -> TokensAnswer:
        """Which special tokens are there, and what ends a generated text?"""
        return self.ask("tokens")

    @checked_names
    def padding(self, text: str | None = None, device: Device = "auto", dtype: Dtype = "auto") -> PaddingAnswer:
        """Why is the padding vector not zero?

        Args:
            text: Sentences, one per line, for the gradient and the averages; they are padded together.
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask("padding", text=text, device=device, dtype=dtype)

    @checked_names
    def lens(
        self,
        text: str,
        k: int = 5,
        pins: tuple[str, ...] = (),
        decoder_text: str = "",
        device: Device = "auto",
        dtype: Dtype = "auto",
        layers: tuple[int, ...] = (),
    ) -> LensAnswer:
        """What does each layer's hidden state say in tokens?

        Args:
            text: Input text; for an encoder-decoder model, the encoder's input.
            k: Number of tokens to list for each cell and head step (between 1 and 100).
            pins: Tokens whose rank to show in every cell and head step, comma-separated.
            decoder_text: Text that the decoder has generated so far.
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
            layers: Hidden states to read, such as "0,6,12" or "0-3"; 0 = embeddings; default: all.
        """
        return self.ask(
            "lens", text=text, k=k, pins=pins, decoder_text=decoder_text, device=device, dtype=dtype, layers=layers
        )

    @checked_names
    def placement(self, task: str | None = None, device: Device = "auto", dtype: Dtype = "auto") -> PlacementAnswer:
        """Where would the model run, and in which precision?

        Args:
            task: Head to place; default: the language-model head, or else the base model alone; if the file has
                neither, the class that config.json names (masked_lm, causal_lm, seq2seq_lm, base, pretraining,
                next_sentence, sequence_classification, token_classification, question_answering, multiple_choice).
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask("placement", task=task, device=device, dtype=dtype)

    @checked_names
    def ladder(
        self,
        text: str,
        k: int = 5,
        pins: tuple[str, ...] = (),
        decoder_text: str = "",
        device: Device = "auto",
        dtype: Dtype = "auto",
        layer: int = -1,
        position: int = -1,
    ) -> LadderAnswer:
        """What does each step of the head do to a token?

        Args:
            text: Input text; for an encoder-decoder model, the encoder's input.
            k: Number of tokens to list for each cell and head step (between 1 and 100).
            pins: Tokens whose rank to show in every cell and head step, comma-separated.
            decoder_text: Text that the decoder has generated so far.
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
            layer: Hidden state to read; 0 = embeddings, -1 = the last one.
            position: Position of the token whose state is read; -1 = the last one.
        """
        return self.ask(
            "ladder",
            text=text,
            k=k,
            pins=pins,
            decoder_text=decoder_text,
            device=device,
            dtype=dtype,
            layer=layer,
            position=position,
        )

    @checked_names
    def predict(
        self,
        text: str,
        masks: tuple[int, ...] = (),
        k: int = 10,
        targets: tuple[str, ...] = (),
        order: str = "left",
        device: Device = "auto",
        dtype: Dtype = "auto",
    ) -> PredictAnswer:
        """What does the model predict for a mask?

        Args:
            text: Input text with one or more mask tokens.
            masks: Positions of additional tokens to mask; 0 is the first special token.
            k: Number of tokens to list for each mask (between 1 and 1,000).
            targets: Rank only these words, comma-separated; a word of several tokens is scored token by token;
                default: the whole vocabulary.
            order: Order in which several masks are filled, each given the ones before it; left: left to right;
                sure: the most confident mask first (left, sure).
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask(
            "predict", text=text, masks=masks, k=k, targets=targets, order=order, device=device, dtype=dtype
        )

    @checked_names
    def plausibility(
        self, text: str, by: str = "token", k: int = 5, device: Device = "auto", dtype: Dtype = "auto"
    ) -> PlausibilityAnswer:
        """How plausible is each token in its place?

        Args:
            text: Text to judge.
            by: For masked language models, how much to mask at a time; token: each token alone, so the tokens of a
                long word give each other away; word: also the rest of its word, so a token sees only the earlier
                part of its word (Kauf and Ivanova 2023) (token, word).
            k: Most likely tokens listed for each position (between 1 and 100).
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask("plausibility", text=text, by=by, k=k, device=device, dtype=dtype)

    @checked_names
    def contrast(
        self, first: str, second: str, k: int = 10, device: Device = "auto", dtype: Dtype = "auto"
    ) -> ContrastAnswer:
        """Which tokens does one text make more likely than another?

        Args:
            first: A text with exactly one mask token.
            second: Another text with exactly one mask token.
            k: Number of tokens to list for each text (between 1 and 1,000).
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask("contrast", first=first, second=second, k=k, device=device, dtype=dtype)

    @checked_names
    def similarity(
        self,
        texts: tuple[str, ...] = (),
        pooling: str = "declared",
        prompt: str = "",
        device: Device = "auto",
        dtype: Dtype = "auto",
    ) -> SimilarityAnswer:
        """Why are these two sentences similar?

        Args:
            texts: A text; give two or more, and the first is compared with each of the others.
            pooling: How the hidden states of a text become one vector; declared: as modules.json and the files
                beside it state (declared, cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken).
            prompt: Name of a prompt that the checkpoint states; empty: its default prompt, if it has one.
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask("similarity", texts=texts, pooling=pooling, prompt=prompt, device=device, dtype=dtype)

    @checked_names
    def heads(
        self,
        text: str,
        pair: str = "",
        choices: tuple[str, ...] = (),
        head: str | None = None,
        k: int = 10,
        new_tokens: int = 12,
        temperature: float = 0.0,
        seed: int = 0,
        longest_answer: int = 15,
        right_answer: tuple[int, ...] = (),
        device: Device = "auto",
        dtype: Dtype = "auto",
    ) -> HeadsAnswer:
        """What does each task head answer?

        Args:
            text: Input text; for question answering, the question.
            pair: The text that follows, or the text with the answer.
            choices: One of the endings to choose from.
            head: Head to run; by default the one that config.json names (masked_lm, causal_lm, next_sentence,
                sequence_classification, token_classification, question_answering, multiple_choice).
            k: Number of next tokens to list (between 1 and 1,000).
            new_tokens: Number of tokens to generate (between 0 and 200).
            temperature: 0 takes the most likely token at each step; values above 0 sample, and higher values are
                more random (between 0 and 10).
            seed: Random seed; the same seed gives the same result (between 0 and 4,294,967,295).
            longest_answer: Maximum length of an answer span in tokens (between 1 and 500).
            right_answer: Positions of the right answer's first and last token, such as 3,5, for the loss.
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask(
            "heads",
            text=text,
            pair=pair,
            choices=choices,
            head=head,
            k=k,
            new_tokens=new_tokens,
            temperature=temperature,
            seed=seed,
            longest_answer=longest_answer,
            right_answer=right_answer,
            device=device,
            dtype=dtype,
        )

    @checked_names
    def pretrain(
        self,
        text: str,
        pair: str = "",
        follows: bool = True,
        share: float = 0.15,
        seed: int = 0,
        device: Device = "auto",
        dtype: Dtype = "auto",
    ) -> PretrainAnswer:
        """What do masking and next-sentence prediction ask of the model?

        Args:
            text: Input text.
            pair: The text that may follow; without one there is no next-sentence loss.
            follows: The next-sentence label.
            share: Share of the ordinary tokens to choose for masking (above 0 and at most 1).
            seed: Random seed; the same seed gives the same result (between 0 and 4,294,967,295).
            device: Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread:
                split across GPUs, main memory and disk; stream: one block of layers at a time, read from the files
                (auto, cpu, cuda, mps, spread, stream).
            dtype: Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision,
                and wherever float32 does not fit (auto, float32, bfloat16, float16).
        """
        return self.ask(
            "pretrain", text=text, pair=pair, follows=follows, share=share, seed=seed, device=device, dtype=dtype
        )

    @checked_names
    def tokenize(self, texts: tuple[str, ...], pair: str = "") -> TokenizeAnswer:
        """How is a text split into tokens?

        Args:
            texts: Input text; several texts make a padded batch.
            pair: Second text of the first sequence.
        """
        return self.ask("tokenize", texts=texts, pair=pair)

    @checked_names
    def training(
        self,
        learning_rate: float = 5e-05,
        warmup_steps: int = 100,
        steps: int = 1000,
        weight_decay: float = 0.01,
        cycles: int = 1,
        power: float = 1.0,
    ) -> TrainingAnswer:
        """What would AdamW decay, and how would the learning rate change?

        Args:
            learning_rate: Highest learning rate, after the warm-up (above 1e-07 and at most 1).
            warmup_steps: Updates until the highest rate is reached (at least 0).
            steps: Total number of updates (between 1 and 1,000,000).
            weight_decay: Weight decay of the decayed group; the default is 0.01 in torch's AdamW and 0 in
                transformers' Trainer (between 0 and 1).
            cycles: Cycles of the cosine schedule with restarts; 1, transformers' default, is plain cosine (between
                1 and 100).
            power: Power of the polynomial schedule; 1, transformers' default, is linear down to 1e-7 (above 0 and
                at most 10).
        """
        return self.ask(
            "training",
            learning_rate=learning_rate,
            warmup_steps=warmup_steps,
            steps=steps,
            weight_decay=weight_decay,
            cycles=cycles,
            power=power,
        )

    @checked_names
    def compare(self, other: str | Path | Checkpoint, moved: int = 50, values: str = "all") -> CompareAnswer:
        """What changed between two checkpoints?

        Args:
            other: Checkpoint to compare with.
            moved: Number of tokens to list, starting with those that moved furthest (between 1 and 1,000).
            values: Numbers to read: all of both checkpoints, a sample of about 1 GB of each, or none, which
                compares only names, shapes and dtypes (all, sample, none).
        """
        return self.ask("compare", other=other, moved=moved, values=values)

    @checked_names
    def base(self, other: str | Path | Checkpoint) -> BaseAnswer:
        """Which base is this?

        Args:
            other: Checkpoint that may be the base.
        """
        return self.ask("base", other=other)

    @checked_names
    def verify_merge(
        self, adapter: str | Path | Checkpoint, merged: str | Path | Checkpoint, rows: str = "64"
    ) -> VerifyMergeAnswer:
        """Was an adapter really merged into its base model?

        Args:
            adapter: Adapter, as PEFT saved it.
            merged: Model that the adapter is said to be merged into.
            rows: Rows of each matrix to replay: 64 from all over it, or all (64, all).
        """
        return self.ask("verify-merge", adapter=adapter, merged=merged, rows=rows)

    @checked_names
    def vitals(self, tokens: tuple[str, ...] = (), k: int = 10, sample: int = 200, seed: int = 0) -> VitalsAnswer:
        """What changes over training steps?

        Args:
            tokens: Tokens to follow, as text or "id 37"; default: the first special tokens.
            k: Number of neighbors of each token (between 1 and 100).
            sample: Number of random rows whose neighbors are followed as well (between 0 and 2,000).
            seed: Random seed for the sample (between 0 and 4,294,967,295).
        """
        return self.ask("vitals", tokens=tokens, k=k, sample=sample, seed=seed)

    @checked_names
    def check(self, values: str = "auto") -> CheckAnswer:
        """Is anything wrong with this checkpoint?

        Args:
            values: Numbers to read: all, a sample of about 1 GB, or none; auto reads all of up to 20 GB of weights
                and samples larger ones (auto, all, sample, none).
        """
        return self.ask("check", values=values)

    @checked_names
    def map(
        self,
        method: str = "pca",
        dimensions: int = 2,
        neighbors: int = 15,
        metric: str = "cosine",
        seed: int = 0,
        stability: bool = False,
        trust: bool = False,
        implementation: str = "inspector",
        min_dist: float = 0.1,
        spread: float = 1.0,
        densmap: bool = False,
    ) -> ProjectAnswer:
        """Which tokens lie close together on a map?

        Args:
            method: pca: the directions of largest variance, computed at once; umap: keeps neighbors together, takes
                longer (pca, umap).
            dimensions: Dimensions of the map (between 2 and 3).
            neighbors: UMAP's n_neighbors: small values show detail, large values the overall structure (between 2
                and 200).
            metric: How true neighbors are measured (cosine, euclidean).
            seed: Random seed for UMAP (between 0 and 4,294,967,295).
            stability: Compute the UMAP again with the next seed, and measure how many neighbors stay together;
                takes twice as long.
            trust: Judge every row of a large vocabulary, not just a sample.
            implementation: UMAP implementation: the inspector's own, or umap-learn, which takes longer (inspector,
                umap-learn).
            min_dist: umap-learn's min_dist: how close points may lie on the map (between 0 and 10).
            spread: umap-learn's spread: how far apart clusters lie (between 0.1 and 10).
            densmap: umap-learn's densMAP: also keeps local densities.
        """
        return self.ask(
            "project",
            method=method,
            dimensions=dimensions,
            neighbors=neighbors,
            metric=metric,
            seed=seed,
            stability=stability,
            trust=trust,
            implementation=implementation,
            min_dist=min_dist,
            spread=spread,
            densmap=densmap,
        )
