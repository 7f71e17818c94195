"""Have umap-learn make a map: the original implementation, beside ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from inspector.analyses.vocabulary_map.compute_umap.compiled import keep_compiled
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.errors import RequestError
from inspector.progress import Progress

ASKED = ("compile", "get_function_type")  # where numba asks a decorated function for what it compiled


@cache
def load_umap_learn(home: Path) -> ModuleType:
    """The package umap, all of whose loops numba keeps as it keeps ours; by itself it keeps but few.

    Args:
        home: The store's folder, see `keep_compiled`.
    """
    keep_compiled(home)
    import numba

    compile_loop = numba.njit
    numba.njit = partial(compile_when_called, compile_loop)
    try:
        import umap
    finally:
        numba.njit = compile_loop
    return umap


def compile_when_called(njit: Callable[..., Any], *declared: Any, **options: Any) -> Any:
    """Decorate as njit does, but keep the code, and compile the types that it declares at the first call.

    At once, that is a hundred functions, most of which no map calls.

    Args:
        njit: numba's decorator.
        declared: What it takes: a function, or the types to compile one for, or nothing.
        options: Its options.
    """
    if declared and callable(declared[0]):
        return compile_when_called(njit, **options)(declared[0])
    signatures = [each for given in declared for each in (given if isinstance(given, (list, tuple)) else [given])]

    def decorate(function: Callable[..., Any]) -> Any:
        loop = njit(**(options | {"cache": True}))(function)
        loop._set_uuid(f"{_identity(function)} {options} {signatures}")
        if signatures:
            for name in ASKED:
                setattr(loop, name, partial(_compile_declared, loop, signatures, name))
        return loop

    return decorate


def _identity(function: Callable[..., Any]) -> str:
    """The same in each process, so that code that calls a function it is given is found again.

    numba looks such code up by the identity of that function, which it otherwise draws at random.
    """
    code = function.__code__
    source = Path(code.co_filename).stat()
    return f"{code.co_filename}:{code.co_firstlineno} {function.__qualname__} {source.st_mtime_ns} {source.st_size}"


def _compile_declared(loop: Any, signatures: list[Any], asked: str, *_: object) -> Any:
    """Do what njit would have done; numba asks for one of these once it needs any form of a function."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        if "compile" in vars(loop):  # not done yet
            for name in ASKED:
                delattr(loop, name)
            for signature in signatures:
                loop.compile(signature)
            loop.disable_compile()
    return loop if asked == "compile" else loop.get_function_type()  # for numba to choose one of its forms


def lay_out_by_umap_learn(
    matrix: torch.Tensor, request: ProjectRequest, *, home: Path, progress: Progress
) -> tuple[np.ndarray, np.ndarray | None]:
    """Call umap-learn as its users do; it searches the neighbors itself.

    Args:
        matrix: (rows, columns), finite, of any floating dtype.
        request: Of a UMAP. With a seed, umap-learn works on one core.
        progress: Told what is being done; umap-learn reports nothing in between.

    Returns:
        Places, (rows, dimensions) in float32, and the neighbors that its approximate search found,
        (rows, neighbors); None where it compared all rows, as it does below 4,096.

    Raises:
        RequestError: If it leaves rows without a place.
    """
    progress(None, "Loading umap-learn; the first time, compiling it takes half a minute")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about TensorFlow, and about steps of its curve fit
        umap = load_umap_learn(home)
        import numba

        threads = numba.get_num_threads()
        progress(None, "umap-learn is computing the map")
        model = umap.UMAP(
            n_neighbors=request.neighbors,
            n_components=request.dimensions,
            metric=request.metric,
            min_dist=request.min_dist,
            spread=request.spread,
            densmap=request.densmap,
            random_state=request.seed,
            n_jobs=1,  # what a seed makes of it anyway
        )
        try:
            places = np.asarray(model.fit_transform(matrix.float().numpy()), dtype=np.float32)
        finally:
            numba.set_num_threads(threads)  # it puts them back itself only where all goes well
    lost = int((~np.isfinite(places).all(axis=1)).sum())
    if lost:
        raise RequestError(
            f"umap-learn assigns no position to {lost:,} of {len(places):,} rows: use the inspector's own UMAP, or "
            "other options."
        )
    return places, getattr(model, "_knn_indices", None)
