"""Reads the head of a GGUF file, to say in plain words why llama.cpp refused it (its own message names no reason).

Layout: github.com/ggml-org/ggml, docs/gguf.md, version 3: magic, version, counts, key-values, tensor infos, then data.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# (elements, bytes) of a block of each ggml type that our bases and adapters use; others are not measured
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 24: (1, 1), 25: (1, 2), 26: (1, 4), 30: (1, 2),
}
_MAX_COUNT = 10_000_000  # more keys, tensors or array items than any real file: damage, not data


class GgufDamaged(ValueError):
    """The file is not GGUF, or its head does not make sense."""


@dataclass(frozen=True)
class GgufHead:
    """What the head says.

    `tensors` maps a name to its dimensions, fastest first. `end` is the byte that the data must reach, `size` the byte
    where the file ends. `parts` is above 1 for a base split over several files: this head lists only its own tensors.
    """

    architecture: str
    kind: str
    tensors: dict[str, tuple[int, ...]]
    end: int
    size: int
    parts: int


def read_head(path: Path) -> GgufHead:
    """Read keys and tensor infos of a file; the weights are not touched.

    Raises:
        GgufDamaged: not GGUF, cut inside the head, or counts and types that cannot be.
        OSError: the file cannot be opened.
    """
    size = path.stat().st_size
    if size < 24:
        raise GgufDamaged(f"it has {size} bytes, too few for a GGUF file")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data)
        try:
            return _read(cursor, size)
        except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
            raise GgufDamaged(f"its head breaks off or is damaged near byte {cursor.at}") from error


def why_unusable(path: Path) -> str | None:
    """Why a file cannot be a whole GGUF file, in words, or None where nothing is wrong with what can be seen."""
    if not path.is_file():
        return "there is no such file" if not path.exists() else "it is not a file"
    try:
        head = read_head(path)
    except (GgufDamaged, OSError) as error:
        return str(error)
    if head.size < head.end:
        return f"it is cut short: {head.size} bytes of at least {head.end}"
    return None


def why_adapter_does_not_fit(adapter: Path, base: Path) -> str | None:
    """Why an adapter file cannot run on a base file, in words, or None where nothing is wrong that can be seen."""
    if problem := why_unusable(adapter):
        return problem
    lora, model = read_head(adapter), read_head(base)
    if lora.kind != "adapter":
        return f"its general.type is {lora.kind!r}, not 'adapter'"
    if lora.architecture != model.architecture:
        return f"it is for architecture {lora.architecture!r}, the base is {model.architecture!r}"
    for name, dims in lora.tensors.items():
        target, _, side = name.rpartition(".")
        if side not in ("lora_a", "lora_b"):
            return f"it holds {name!r}, which is not a LoRA tensor"
        if target not in model.tensors and model.parts > 1:
            continue
        if target not in model.tensors or len(dims) != 2 or len(model.tensors[target]) != 2:
            return f"it changes {target!r}, which the base does not have as a matrix"
        wanted = model.tensors[target][0 if side == "lora_a" else 1]
        have = dims[0] if side == "lora_a" else dims[1]
        if have != wanted:
            return f"{name!r} has size {have} where the base has {wanted}: it was made for a base of another size"
    return None


class _Cursor:
    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def take(self, code: str) -> Any:
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def text(self) -> str:
        length = self.take("Q")
        if length > len(self.data) - self.at:
            raise GgufDamaged(f"a text at byte {self.at} claims {length} bytes, more than the file has")
        value = self.data[self.at : self.at + length]
        self.at += length
        return value.decode()

    def count(self, what: str) -> int:
        value = int(self.take("Q"))
        if value > _MAX_COUNT:
            raise GgufDamaged(f"it claims {value} {what}, which cannot be")
        return value

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.take(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise GgufDamaged(f"a value at byte {self.at} has type {kind}, which does not exist")
        inner, length = self.take("I"), self.count("array items")
        if inner in _SCALARS:
            self.at += struct.calcsize("<" + _SCALARS[inner]) * length
        elif inner == _STRING:
            for _ in range(length):
                self.at += 8 + struct.unpack_from("<Q", self.data, self.at)[0]
        else:
            raise GgufDamaged(f"an array at byte {self.at} holds type {inner}, which does not exist")
        return None  # arrays are the vocabulary; nothing here needs them


def _read(cursor: _Cursor, size: int) -> GgufHead:
    if cursor.data[:4] != b"GGUF":
        raise GgufDamaged(f"it begins with {bytes(cursor.data[:4])!r}, not b'GGUF'")
    cursor.at = 4
    version = cursor.take("I")
    if version not in (2, 3):
        raise GgufDamaged(f"its GGUF version is {version}; 2 and 3 are known")
    tensor_count, key_count = cursor.count("tensors"), cursor.count("keys")
    keys: dict[str, Any] = {}
    for _ in range(key_count):
        name = cursor.text()
        keys[name] = cursor.value(cursor.take("I"))
    tensors: dict[str, tuple[int, ...]] = {}
    reach = 0
    for _ in range(tensor_count):
        name, n_dims = cursor.text(), cursor.take("I")
        if n_dims > 4:
            raise GgufDamaged(f"tensor {name!r} has {n_dims} dimensions")
        dims = tuple(int(cursor.take("Q")) for _ in range(n_dims))
        kind, offset = cursor.take("I"), int(cursor.take("Q"))
        tensors[name] = dims
        reach = max(reach, offset + _bytes_of(dims, kind))
    alignment = int(keys.get("general.alignment") or 32)
    start = -(-cursor.at // alignment) * alignment
    return GgufHead(
        architecture=str(keys.get("general.architecture", "")),
        kind=str(keys.get("general.type", "model")),
        tensors=tensors,
        end=start + reach if tensors else cursor.at,
        size=size,
        parts=int(keys.get("split.count") or 1),
    )


def _bytes_of(dims: tuple[int, ...], kind: int) -> int:
    if kind not in _BLOCKS:
        return 0
    elements = 1
    for dim in dims:
        elements *= dim
    per_block, block_bytes = _BLOCKS[kind]
    return elements // per_block * block_bytes
