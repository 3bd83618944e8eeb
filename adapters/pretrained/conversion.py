"""From another program's archive to a checkpoint under our names (`converted.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dialbench.errors import InputError, first_line
from dialbench.files.lines import read_file, require_file

from ..blocks.sequences import Around, Words
from .converted import ConvertedConfig, write, write_word_pieces
from .own import OwnModel, some

_HINT = "Name the archive of this very system, as its authors released it."


Change = Callable[[Tensor], Tensor]


def third(number: int) -> Change:
    """Cuts queries (0), keys (1) or values (2) out of one map of all three, (3 n, ...)."""
    return lambda tensor: tensor.chunk(3)[number]


@dataclass(frozen=True)
class Archive:
    """What another program saved.

    Attributes:
        path: where the weights lie, for errors.
        tensors: by its own names.
        names: patterns and what replaces them, one after another, from a name of ours to its own.
        changes: patterns of our names, and what makes the tensor of ours; the first counts.
        ignored: pattern of names that nothing here needs.
        sizes: options of our system that they decide.
        positions: rows that our tables of positions need.
        pieces: its word pieces, in the order of their numbers.
        roles: special tokens by what the tokenizer calls them (`pad_token` and so on).
        specials: the tokens that PAD, UNK, BOS, EOS and SEP begin as.
        template: what stands around a context, `$A`.
        norm_eps: of layer normalisation.
    """

    path: Path
    tensors: Mapping[str, Tensor]
    names: Sequence[tuple[str, str]]
    changes: Sequence[tuple[str, Change]]
    ignored: str
    sizes: Mapping[str, Any]
    positions: int
    pieces: Sequence[str]
    roles: Mapping[str, str]
    specials: Sequence[str]
    template: str = "$A"
    norm_eps: float = 1e-5

    def error(self, what: str) -> InputError:
        """The error that it cannot be converted."""
        return InputError(what, where=str(self.path), hint=_HINT)

    def convert(self, system: type[OwnModel], folder: Path) -> None:
        """Writes it into an empty folder as weights of a system of ours.

        Raises:
            InputError: it is of another system or not whole.
        """
        numbers = {piece: number for number, piece in enumerate(self.pieces)}
        needed = {*self.roles.values(), *self.specials}
        if len(numbers) < len(self.pieces) or not needed <= numbers.keys():
            what = (
                f"lacks {some(needed - numbers.keys())}" if needed - numbers.keys() else "repeats"
            )
            raise self.error(f"its vocabulary {what} word pieces")
        V = len(numbers)
        with torch.device("meta"):
            model = system.Model(self._options(system), Words(V, (), Around(), self.positions))
        tensors = self.renamed({name: t.shape for name, t in model.state_dict().items()})
        specials = [numbers[token] for token in self.specials]
        config = ConvertedConfig(
            system.name, self.sizes, V, self.positions, specials, self.norm_eps
        )
        write(folder, config, tensors)
        write_word_pieces(folder, self.pieces, self.roles, self.template)

    def _options(self, system: type[OwnModel]) -> Any:
        try:
            return replace(system.Config(), **self.sizes)
        except (TypeError, ValueError) as error:
            raise self.error(f"its sizes do not fit ({error})") from None

    def renamed(self, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
        """The tensors under our names, in float32.

        Args:
            shapes: of all our tensors, by name.

        Raises:
            InputError: a tensor is missing, left over or of another shape.
        """
        sources = {ours: self._name(ours) for ours in shapes}
        if missing := set(sources.values()) - self.tensors.keys():
            raise self.error(f"it lacks {some(missing)}")
        surplus = self.tensors.keys() - set(sources.values())
        if surplus := {name for name in surplus if not re.fullmatch(self.ignored, name)}:
            raise self.error(f"it has {some(surplus)}, for which there is nothing here")
        return {ours: self._changed(ours, theirs, shapes[ours]) for ours, theirs in sources.items()}

    def _name(self, ours: str) -> str:
        for pattern, replacement in self.names:
            ours = re.sub(pattern, replacement, ours)
        return ours

    def _changed(self, ours: str, theirs: str, shape: torch.Size) -> Tensor:
        tensor = self.tensors[theirs]
        fitting = (change for pattern, change in self.changes if re.fullmatch(pattern, ours))
        try:
            value = next(fitting, Tensor.float)(tensor).float()
        except (RuntimeError, IndexError):
            value = tensor
        if value.shape != shape:
            needed = f"of which {tuple(shape)} cannot be made"
            raise self.error(f"its {theirs} is of shape {tuple(tensor.shape)}, {needed}")
        return value


def only_file(source: Path, *patterns: str) -> Path:
    """The only file below a folder that fits one of the patterns.

    Raises:
        InputError: there is none, or several.
    """
    if not source.is_dir():
        raise InputError("there is no such folder", where=str(source), hint="Check the path.")
    files = sorted({path for pattern in patterns for path in source.rglob(pattern)})
    if len(files) == 1:
        return files[0]
    wanted = " or ".join(patterns)
    raise InputError(
        f"it holds {len(files) or 'no'} files {wanted}",
        where=str(source),
        hint="Name a folder with exactly one.",
    )


def read_pieces(path: Path) -> list[str]:
    """The word pieces of a vocabulary, one a line; a count behind a piece is left out.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        text = read_file(require_file(path)).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"no word pieces can be read ({first_line(error)})"
        raise InputError(what, where=str(path), hint="Fetch it again.") from None
    return [line.split()[0] for line in text.split("\n") if line.strip()]
