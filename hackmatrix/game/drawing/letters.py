"""Letters as strokes on a grid 4 wide and 6 high, y downwards, with corners cut at 45 degrees.

They are drawn with a pen of width 1 with round ends. With our own letters a picture looks the same
everywhere: no font is needed, and every exporter has the same letters.
"""

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
