"""The layouts of observations as Markdown tables: `python -m hackmatrix.game.rules.layout_tables`.

The documentation site shows them in `docs/environment.md`.
"""

import sys

from hackmatrix.game.rules import observation as layout
from hackmatrix.game.rules import tactical
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import Channel
from hackmatrix.game.rules.programs import PROGRAMS


def record_table() -> str:
    """The fields of the compact record."""
    fields = ["| byte | bits | field | up to | meaning |", "|---|---|---|---|---|"]
    for field in layout.FIELDS:
        of_cells = field.byte in layout.PLANE
        byte = f"{layout.PLANE[field.byte]} + c" if of_cells else layout.BYTE[field.byte]
        bits = _span(field.first, field.width)
        named = f"`{field.byte}`, {byte} | {bits} | `{field.name}`"
        fields.append(f"| {named} | {field.largest} | {field.meaning} |")
    scalars = ["| number | bytes | meaning |", "|---|---|---|"]
    for scalar in layout.SCALARS:
        bytes_ = _span(layout.BYTE[scalar.name], scalar.size)
        scalars.append(f"| `{scalar.name}` | {bytes_} | {scalar.meaning} |")
    return "\n".join([*fields, "", *scalars])


def full_table() -> str:
    """The features of the layout `full`; its first ones are the layout `classic`."""
    first_cell = layout.PLAYER_FEATURES + len(PROGRAMS)
    first_extra = layout.CLASSIC_SIZE + CELLS * layout.EXTRA_CELL_FEATURES
    affordable = layout.FEATURE_SIZE["full"] - len(PROGRAMS)
    rows = [
        "| feature | number |",
        "|---|---|",
        *_channel_rows(layout.PLAYER_CHANNELS, 0),
        f"| {_span(layout.PLAYER_FEATURES, len(PROGRAMS))} | 1 for each program owned |",
        *_channel_rows(layout.CELL_CHANNELS, 0, f"{first_cell} + {layout.CELL_FEATURES} c + "),
        *_channel_rows(
            layout.EXTRA_CELL_CHANNELS,
            0,
            f"{layout.CLASSIC_SIZE} + {layout.EXTRA_CELL_FEATURES} c + ",
        ),
        *_channel_rows(layout.EXTRA_CHANNELS, first_extra),
        f"| {_span(affordable, len(PROGRAMS))} | 1 for each program owned and affordable |",
    ]
    return "\n".join(rows)


def tactical_table() -> str:
    """The features of the layout `tactical`."""
    rows = ["| feature | group | integers | divided by | meaning |", "|---|---|---|---:|---|"]
    for group in tactical.GROUPS:
        place = _span(tactical.START[group.name], group.size)
        integers = f"{group.low} to {group.high}"
        rows.append(f"| {place} | `{group.name}` | {integers} | {group.scale} | {group.meaning} |")
    return "\n".join(rows)


def _channel_rows(channels: tuple[Channel, ...], start: int, before: str = "") -> list[str]:
    """A row for each of some channels, whose features begin at `start`."""
    starts = layout.channel_starts(channels)
    return [
        f"| {before}{_span(start + starts[channel.name], channel.size)} | {_in_words(channel)} |"
        for channel in channels
    ]


def _in_words(channel: Channel) -> str:
    """A channel's feature of a number: `(stage - 1) / 7`."""
    number = f"({channel.name} - {channel.zero})" if channel.zero else channel.name
    text = f"`{number} / {channel.scale}`" if channel.scale > 1 else f"`{number}`"
    if channel.size > 1:
        text += f", one-hot of 1 to {channel.size}"
    if channel.low is not None:
        text += f", at least {channel.low}"
    if channel.high is not None:
        text += f", at most {channel.high}"
    return f"{text} ({channel.meaning})" if channel.meaning else text


def _span(first: int, size: int) -> str:
    """Numbers in a row: `3` or `3-5`."""
    return str(first) if size == 1 else f"{first}-{first + size - 1}"


TABLES = {"record": record_table, "full": full_table, "tactical": tactical_table}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        if name not in TABLES:
            sys.exit(f"{name}: must be one of {', '.join(TABLES)}")
        print(f"{TABLES[name]()}\n")
