"""The tables of the record: fields fit their bytes, and all readers of a record agree."""

import random
from itertools import groupby

import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import (
    BYTE,
    FIELD,
    FIELDS,
    PLANE,
    RECORD_SIZE,
    SCALARS,
    CellBytes,
    Field,
    number_of,
)

RNG = random.Random(0)
RECORD = RNG.randbytes(RECORD_SIZE)


def test_the_fields_of_a_byte_follow_each_other_without_gap_or_overlap() -> None:
    for byte, fields in groupby(FIELDS, key=lambda field: field.byte):
        end = 0
        for field in fields:
            assert field.first == end, field
            end += field.width
        assert end == 8 or byte == "flags"
    assert {field.byte for field in FIELDS} == {*PLANE, "flags"}
    assert len(FIELD) == len(FIELDS)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_takes_its_largest_number(field: Field) -> None:
    assert 0 < field.largest < 1 << field.width
    for number in range(field.largest + 1):
        byte = field.put(number)
        assert field.of(byte) == number
        assert field.of(byte ^ 255) == number ^ ((1 << field.width) - 1)  # all other bits set


def test_the_numbers_follow_the_planes() -> None:
    end = len(PLANE) * CELLS
    for scalar in SCALARS:
        assert BYTE[scalar.name] == end
        end += scalar.size
    assert end <= RECORD_SIZE < end + 4
    assert RECORD_SIZE % 4 == 0


@pytest.mark.parametrize("module", [np, jnp], ids=["numpy", "jax"])
def test_arrays_are_read_as_bytes_are(module: np) -> None:
    records = module.asarray(np.frombuffer(RECORD * 2, np.uint8).reshape(2, RECORD_SIZE))
    for name in [scalar.name for scalar in SCALARS] + ["show", "calm", "step"]:
        got = number_of(records, name)
        assert (got.shape, got.dtype) == ((2,), np.int32)
        assert got.tolist() == [number_of(RECORD, name)] * 2
    planes = CellBytes.of(records)
    for cell in range(CELLS):
        one = CellBytes(*(RECORD[start + cell] for start in PLANE.values()))
        for field in FIELDS:
            if field.byte in PLANE:
                assert planes.field(field.name)[:, cell].tolist() == [one.field(field.name)] * 2


def test_a_cell_holds_what_is_put_into_its_fields() -> None:
    numbers = {f.name: RNG.randint(0, f.largest) for f in FIELDS if f.byte in PLANE}
    cell = CellBytes.holding(numbers)
    assert {name: cell.field(name) for name in numbers} == numbers
    assert CellBytes.holding({}) == CellBytes(0, 0, 0, 0, 0, 0)
