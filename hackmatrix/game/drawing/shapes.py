"""Every shape, drawn in a square of 100 x 100 with y downwards.

A shape is a tuple of layers from back to front: (paint, width, path). `paint` is "ink", the colour
passed by the caller, or the name of a colour; `width` is the pen's, 0 fills the path. Paths use
only M, L and Z with absolute numbers, so that anything that draws polygons can draw them.
"""


# --- Letters as strokes on a grid 4 wide and 6 high, y downwards, with corners cut at 45 degrees --
#
# They are drawn with a pen of width 1 with round ends. With our own letters a picture looks the
# same
# everywhere: no font is needed, and every exporter has the same letters.

WIDTH, HEIGHT = 4, 6
ADVANCE = 6  # from a letter to the next

LETTERS = {
    "A": "M0 6 L0 2 L2 0 L4 2 L4 6 M0 4 L4 4",
    "B": "M0 0 L3 0 L4 1 L4 2 L3 3 L4 4 L4 5 L3 6 L0 6 Z M0 3 L3 3",
    "C": "M4 1 L3 0 L1 0 L0 1 L0 5 L1 6 L3 6 L4 5",
    "D": "M0 0 L2.5 0 L4 1.5 L4 4.5 L2.5 6 L0 6 Z",
    "E": "M4 0 L0 0 L0 6 L4 6 M0 3 L3 3",
    "F": "M4 0 L0 0 L0 6 M0 3 L3 3",
    "G": "M4 1 L3 0 L1 0 L0 1 L0 5 L1 6 L4 6 L4 3 L2.5 3",
    "H": "M0 0 L0 6 M4 0 L4 6 M0 3 L4 3",
    "I": "M1 0 L3 0 M2 0 L2 6 M1 6 L3 6",
    "J": "M4 0 L4 5 L3 6 L1 6 L0 5",
    "K": "M0 0 L0 6 M4 0 L1 3 L4 6 M0 3 L1 3",
    "L": "M0 0 L0 6 L4 6",
    "M": "M0 6 L0 0 L2 2 L4 0 L4 6",
    "N": "M0 6 L0 0 L4 6 L4 0",
    "O": "M1 0 L3 0 L4 1 L4 5 L3 6 L1 6 L0 5 L0 1 Z",
    "P": "M0 6 L0 0 L3 0 L4 1 L4 2 L3 3 L0 3",
    "Q": "M1 0 L3 0 L4 1 L4 5 L3 6 L1 6 L0 5 L0 1 Z M2 4 L4 6",
    "R": "M0 6 L0 0 L3 0 L4 1 L4 2 L3 3 L0 3 M2 3 L4 5 L4 6",
    "S": "M4 1 L3 0 L1 0 L0 1 L0 2 L1 3 L3 3 L4 4 L4 5 L3 6 L1 6 L0 5",
    "T": "M0 0 L4 0 M2 0 L2 6",
    "U": "M0 0 L0 5 L1 6 L3 6 L4 5 L4 0",
    "V": "M0 0 L0 2 L2 6 L4 2 L4 0",
    "W": "M0 0 L0 6 L2 4 L4 6 L4 0",
    "X": "M0 0 L4 6 M4 0 L0 6",
    "Y": "M0 0 L2 3 L4 0 M2 3 L2 6",
    "Z": "M0 0 L4 0 L0 6 L4 6",
    "0": "M1 0 L3 0 L4 1 L4 5 L3 6 L1 6 L0 5 L0 1 Z",
    "1": "M1 1 L2 0 L2 6 M1 6 L3 6",
    "2": "M0 1 L1 0 L3 0 L4 1 L4 2 L0 6 L4 6",
    "3": "M0 1 L1 0 L3 0 L4 1 L4 2 L3 3 L4 4 L4 5 L3 6 L1 6 L0 5 M1.5 3 L3 3",
    "4": "M3 6 L3 0 L0 4 L4 4",
    "5": "M4 0 L0 0 L0 3 L3 3 L4 4 L4 5 L3 6 L1 6 L0 5",
    "6": "M4 1 L3 0 L1 0 L0 1 L0 5 L1 6 L3 6 L4 5 L4 4 L3 3 L0 3",
    "7": "M0 0 L4 0 L4 1 L1.5 6",
    "8": "M1 3 L0 2 L0 1 L1 0 L3 0 L4 1 L4 2 L3 3 L4 4 L4 5 L3 6 L1 6 L0 5 L0 4 L1 3 L3 3",
    "9": "M0 5 L1 6 L3 6 L4 5 L4 1 L3 0 L1 0 L0 1 L0 2 L1 3 L4 3",
    "+": "M2 1.5 L2 4.5 M0.5 3 L3.5 3",
    "-": "M0.5 3 L3.5 3",
    "_": "M0 6 L4 6",
    "/": "M0.5 6 L3.5 0",
    "?": "M0 1 L1 0 L3 0 L4 1 L4 2 L2 3.5 L2 4 M2 5.8 L2 6",
}


# --- Every shape, drawn in a square of 100 x 100 with y downwards ---------------------------------


Layer = tuple[str, float, str]

_INK, _CUT = "ink", "background"
_PEN = 10

_PLATE = "M10 2 L98 2 L98 90 L90 98 L2 98 L2 10 Z"
_VIRUS = (
    "M50 2 L60 27 L84 16 L73 40 L98 50 L73 60 L84 84 L60 73 L50 98 L40 73 L16 84 L27 60 L2 50 "
    "L27 40 L16 16 L40 27 Z"
)
_DAEMON = "M6 2 L26 22 L74 22 L94 2 L94 62 L68 96 L32 96 L6 62 Z"
_GLITCH = "M22 6 L98 6 L98 32 L22 32 Z M2 37 L72 37 L72 63 L2 63 Z M26 68 L88 68 L88 94 L26 94 Z"
_CRYPTOG = "M50 0 L92 24 L92 76 L50 100 L8 76 L8 24 Z"
_PLAYER = (
    "M34 2 L66 2 L78 14 L78 40 L66 52 L76 52 L94 70 L94 98 L6 98 L6 70 L24 52 L34 52 L22 40 "
    "L22 14 Z"
)
_CROSS = "M36 6 L64 6 L64 36 L94 36 L94 64 L64 64 L64 94 L36 94 L36 64 L6 64 L6 36 L36 36 Z"
_DIAMOND = "M50 4 L96 50 L50 96 L4 50 Z"
_HEART = "M50 92 L6 48 L6 26 L22 10 L36 10 L50 24 L64 10 L78 10 L94 26 L94 48 Z"
_STAR = "M50 5 L62 37 L96 38 L69 59 L78 92 L50 73 L22 92 L31 59 L4 38 L38 37 Z"
_HOURGLASS = "M22 8 L78 8 L78 18 L56 50 L78 82 L78 92 L22 92 L22 82 L44 50 L22 18 Z"
_BOLT = "M62 2 L16 56 L46 56 L36 98 L84 40 L54 40 Z"
_RETICLE = "M32 22 L50 4 L68 22 M78 32 L96 50 L78 68 M68 78 L50 96 L32 78 M22 68 L4 50 L22 32"
_SWORD = "M94 6 L94 24 L46 72 L28 54 L76 6 Z"


def _piece(outline: str, *details: Layer) -> tuple[Layer, ...]:
    """A filled piece with a dark rim, so that it stands out on blocks too."""
    return ((_CUT, 14, outline), (_INK, 0, outline), *details)


def _strokes(path: str) -> tuple[Layer, ...]:
    return ((_INK, _PEN, path),)


def _rimmed(width: float, path: str) -> tuple[Layer, ...]:
    """Strokes with a dark rim."""
    return ((_CUT, width + 12, path), (_INK, width, path))


def _filled(path: str) -> tuple[Layer, ...]:
    return ((_INK, 0, path),)


BOARD: dict[str, tuple[Layer, ...]] = {
    "plate": _filled(_PLATE),
    "frame": ((_INK, 3, _PLATE),),
    "tab": _filled("M0 0 L100 0 L100 62 L16 62 L0 46 Z"),
    "tab_foot": _filled("M16 38 L100 38 L100 100 L0 100 L0 54 Z"),
    "center": ((_INK, 5, "M50 4 L50 14 M50 86 L50 96 M4 50 L14 50 M86 50 L96 50"),),
    "siphon": _piece(_CROSS, (_CUT, 0, "M50 38 L62 50 L50 62 L38 50 Z")),
    "exit": (
        (_INK, 9, "M60 8 L12 8 L12 92 L60 92"),
        (_INK, 0, "M34 40 L62 40 L62 20 L96 50 L62 80 L62 60 L34 60 Z"),
    ),
    "credits": _filled(_DIAMOND),
    "energy": _filled(_BOLT),
    "transmission": _rimmed(7, _RETICLE),
}

PIECES: dict[str, tuple[Layer, ...]] = {
    "player": _piece(_PLAYER, (_CUT, 0, "M34 20 L78 20 L78 34 L34 34 Z")),
    "virus": _piece(_VIRUS, (_CUT, 0, "M50 38 L62 50 L50 62 L38 50 Z")),
    "daemon": _piece(
        _DAEMON,
        (_CUT, 0, "M20 40 L44 50 L44 62 L30 62 Z M80 40 L56 50 L56 62 L70 62 Z"),
        (_CUT, 7, "M40 79 L60 79"),
    ),
    "glitch": _piece(
        _GLITCH, (_CUT, 0, "M16 44 L30 44 L30 56 L16 56 Z M44 44 L58 44 L58 56 L44 56 Z")
    ),
    "cryptog": _piece(
        _CRYPTOG, (_CUT, 0, "M50 24 L64 38 L64 48 L57 54 L62 78 L38 78 L43 54 L36 48 L36 38 Z")
    ),
    "last_seen": (
        (
            _INK,
            6,
            "M36 8 L50 0 L64 8 M80 17 L92 24 L92 40 M92 60 L92 76 L80 83 M64 92 L50 100 L36 92 "
            "M20 83 L8 76 L8 60 M8 40 L8 24 L20 17",
        ),
    ),
    "hp": _filled("M0 26 L74 0 L74 74 L0 100 Z"),
    "stunned": _rimmed(14, "M50 8 L50 92 M12 28 L88 72 M88 28 L12 72"),
    "disabled": _rimmed(20, "M28 16 L28 84 M72 16 L72 84"),
    "from_siphon": ((_CUT, 16, _CROSS), (_INK, 0, _CROSS)),
}

PANEL: dict[str, tuple[Layer, ...]] = {
    "heart": _filled(_HEART),
    "star": _filled(_STAR),
    "hourglass": _filled(_HOURGLASS),
    "sword": ((_INK, 0, _SWORD), (_INK, 10, "M14 50 L50 86 M30 70 L8 92")),
    "stairs": ((_INK, 12, "M6 88 L30 88 L30 62 L54 62 L54 36 L78 36 L78 10 L96 10"),),
    "cross_out": ((_INK, 16, "M16 16 L84 84 M84 16 L16 84"),),
    "slot": _filled("M6 2 L98 2 L98 94 L94 98 L2 98 L2 6 Z"),
}

PROGRAMS: dict[str, tuple[Layer, ...]] = {
    "PUSH": (
        *_strokes(
            "M32 24 L50 6 L68 24 M32 76 L50 94 L68 76 M24 32 L6 50 L24 68 M76 32 L94 50 L76 68"
        ),
        *_filled("M38 38 L62 38 L62 62 L38 62 Z"),
    ),
    "PULL": (
        *_strokes(
            "M34 8 L50 24 L66 8 M34 92 L50 76 L66 92 M8 34 L24 50 L8 66 M92 34 L76 50 L92 66"
        ),
        *_filled("M40 40 L60 40 L60 60 L40 60 Z"),
    ),
    "CRASH": (
        *_strokes(
            "M50 4 L50 20 M50 80 L50 96 M4 50 L20 50 M80 50 L96 50 "
            "M17 17 L28 28 M83 17 L72 28 M17 83 L28 72 M83 83 L72 72"
        ),
        *_filled("M50 30 L70 50 L50 70 L30 50 Z"),
    ),
    "WARP": (
        *_strokes("M26 74 L78 22 M46 16 L84 16 L84 54"),
        *_filled("M8 64 L36 64 L36 92 L8 92 Z"),
        *_strokes("M64 92 L92 92 L92 70 M8 38 L8 10 L26 10"),
    ),
    "POLY": (*_filled("M28 8 L54 54 L2 54 Z"), *_strokes("M56 56 L92 56 L92 92 L56 92 Z")),
    "WAIT": _filled(_HOURGLASS),
    "DEBUG": (
        *_filled("M12 58 L88 58 L88 94 L12 94 Z"),
        *_strokes("M32 8 L68 42 M68 8 L32 42"),
    ),
    "ROW": (
        *_strokes("M8 50 L92 50 M26 30 L6 50 L26 70 M74 30 L94 50 L74 70"),
        *_filled("M50 34 L66 50 L50 66 L34 50 Z"),
    ),
    "COL": (
        *_strokes("M50 8 L50 92 M30 26 L50 6 L70 26 M30 74 L50 94 L70 74"),
        *_filled("M50 34 L66 50 L50 66 L34 50 Z"),
    ),
    "UNDO": _strokes("M34 10 L10 34 L34 58 M12 34 L66 34 L88 56 L88 68 L68 88 L30 88"),
    "STEP": (*_filled("M6 14 L40 50 L6 86 Z M44 14 L78 50 L44 86 Z"), *_strokes("M88 18 L88 82")),
    "SIPH+": (
        *_filled(
            "M24 34 L44 34 L44 54 L64 54 L64 74 L44 74 L44 94 L24 94 L24 74 L4 74 L4 54 L24 54 Z"
        ),
        *_strokes("M78 6 L78 42 M60 24 L96 24"),
    ),
    "EXCH": _strokes("M8 32 L90 32 M68 10 L90 32 L68 54 M92 72 L10 72 M30 52 L10 72 L30 92"),
    "SHOW": (
        *_strokes("M4 50 L30 24 L70 24 L96 50 L70 76 L30 76 Z"),
        *_filled("M50 34 L66 50 L50 66 L34 50 Z"),
    ),
    "RESET": _filled(_HEART),
    "CALM": _filled("M64 6 L34 16 L14 42 L14 62 L32 88 L62 96 L90 78 L62 74 L46 54 L46 30 Z"),
    "D_BOM": (
        *_filled("M28 36 L54 36 L72 54 L72 80 L54 98 L28 98 L10 80 L10 54 Z"),
        *_strokes("M60 46 L72 34 L72 20 L86 6"),
    ),
    "DELAY": _strokes("M34 6 L66 6 L94 34 L94 66 L66 94 L34 94 L6 66 L6 34 Z M50 26 L50 52 L68 64"),
    "ANTI-V": (*_filled(_VIRUS), (_CUT, 26, "M12 88 L88 12"), *_strokes("M8 92 L92 8")),
    "SCORE": _filled(_STAR),
    "REDUC": _strokes("M50 6 L50 66 M24 42 L50 68 L76 42 M14 92 L86 92"),
    "ATK+": (
        *_filled("M78 6 L78 22 L40 60 L24 44 L62 6 Z"),
        *_strokes("M12 40 L44 72 M24 60 L6 78 M76 60 L76 96 M58 78 L94 78"),
    ),
    "HACK": _strokes("M10 16 L44 50 L10 84 M54 86 L94 86"),
}

SHAPES = BOARD | PIECES | PANEL | PROGRAMS
