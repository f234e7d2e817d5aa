"""The look of the game as data: colours, shapes, letters, and positions within a cell.

Pictures, pages and animations all draw by `LOOK`, which `json.dumps` can write.
"""

from hackmatrix.game.drawing.shapes import ADVANCE, HEIGHT, LETTERS, SHAPES, WIDTH

CELL = 100  # side of a cell and of the square that shapes are drawn in, in units

# Colour is never the only difference: kinds differ in shape, and in lightness where they can.
COLOURS = {
    "background": "#0a0d13",
    "plate": "#161d28",
    "fire": "#232e3e",  # in the player's line of fire
    "hollow": "#0e131b",  # siphoned
    "edge": "#3a4a5e",
    "faint": "#3d4b5e",
    "label": "#8a9bb0",
    "text": "#eaf1f8",
    "player": "#ffffff",
    "virus": "#ff5d8f",
    "daemon": "#ff9a3c",
    "glitch": "#e4ef5a",
    "cryptog": "#b69cff",
    "transmission": "#ff8fa3",
    "data": "#2a527d",
    "program": "#1c6354",
    "question": "#5a4690",
    "siphon": "#4fe3c1",
    "exit": "#5ee06a",
    "credits": "#ffd25e",
    "energy": "#56bdff",
    "danger": "#ff5d6c",
}

# The same by day: dark on light, for pages.
LIGHT = {
    "background": "#f3f5f8",
    "plate": "#dfe5ed",
    "fire": "#cbd6e4",
    "hollow": "#fbfcfe",
    "edge": "#8494a6",
    "faint": "#a9b6c4",
    "label": "#465565",
    "text": "#101a25",
    "player": "#101a25",
    "virus": "#b8125a",
    "daemon": "#a04800",
    "glitch": "#5f6400",
    "cryptog": "#5a38bd",
    "transmission": "#b32342",
    "data": "#a9cdf2",
    "program": "#98dccb",
    "question": "#d0c2f5",
    "siphon": "#00654f",
    "exit": "#0d6718",
    "credits": "#785300",
    "energy": "#00579b",
    "danger": "#b81628",
}

# Left, top and size of a shape in a cell. The content of a cell is large while no piece is there,
# else small at the foot. For resources and hp it is the position of the first; each further one is
# a `STEP` away.
ANCHORS = {
    "plate": (2, 2, 96),
    "content": (20, 18, 60),
    "content_foot": (7, 75, 20),
    "icon": (30, 23, 40),  # of a program
    "piece": (22, 17, 57),
    "hp": (5, 55, 16),
    "stunned": (72, 30, 25),
    "disabled": (72, 54, 21),
    "from_siphon": (5, 4, 20),
    "transmission": (17, 12, 66),
    "coming": (34, 29, 32),  # the enemy that a transmission will be
    "coming_corner": (50, 6, 22),
    "resource": (37, 37, 26),
    "resource_foot": (76, 75, 18),
    "tab": (55, 1, 44),
    "tab_foot": (55, 55, 44),
    "spawn": (76, 5, 20),
    "spawn_foot": (75, 76, 19),
}
STEPS = {"hp": (0, -17), "resource": (30, 0), "resource_foot": (-20, 0)}

# Left, top, width and height of a text in a cell, and its alignment: 0 left, 0.5 middle, 1 right.
TEXT_ANCHORS = {
    "number": (25, 33, 50, 46, 0.5),
    "number_foot": (7, 76, 28, 18, 0),
    "name": (10, 73, 80, 15, 0.5),
    "turns": (31, 32, 38, 26, 0.5),
    "turns_corner": (68, 8, 26, 18, 1),
    "spawn": (59, 7, 15, 16, 1),
    "spawn_foot": (59, 78, 14, 15, 1),
    "hidden": (26, 6, 12, 12, 0),  # revealed, though the player does not see it
}

LOOK = {
    "cell": CELL,
    "colours": COLOURS,
    "places": ANCHORS,
    "steps": STEPS,
    "text_places": TEXT_ANCHORS,
    "shapes": SHAPES,
    "letters": LETTERS,
    "letter_size": {"width": WIDTH, "height": HEIGHT, "advance": ADVANCE},
}
