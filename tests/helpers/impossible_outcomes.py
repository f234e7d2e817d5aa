"""Recorded steps altered in one field: outcomes that chance cannot have."""

from collections.abc import Callable

from alterations import POLY, WARP, Alteration, blocks, is_block, more, new_stage, place, toggle
from recordings import Raw

IMPOSSIBLE: dict[str, Alteration] = {}


def impossible(name: str) -> Callable[[Alteration], Alteration]:
    """Put an alteration into the table."""

    def register(alter: Alteration) -> Alteration:
        IMPOSSIBLE[name] = alter
        return alter

    return register


def spawned(before: Raw, step: Raw) -> Raw | None:
    """The last transmission of a step, if it is new."""
    new = len(step["after"]["transmissions"]) > len(before["transmissions"])
    return step["after"]["transmissions"][-1] if new else None


# --- what chance cannot do -----------------------------------------------------------------------


@impossible("spawned on the player")
def _(before: Raw, step: Raw) -> object:
    transmission, player = spawned(before, step), step["after"]["player"]
    return transmission and transmission.update(row=player["row"], col=player["col"]) is None


@impossible("spawned on a block")
def _(before: Raw, step: Raw) -> object:
    transmission, cells = spawned(before, step), step["after"]["cells"]
    at = next((i for i, cell in enumerate(cells) if is_block(cell)), None)
    return transmission and at and transmission.update(row=at // 6, col=at % 6) is None


@impossible("spawned on an enemy")
def _(before: Raw, step: Raw) -> object:
    transmission, enemies = spawned(before, step), step["after"]["enemies"]
    return transmission and any(
        transmission.update(row=e["row"], col=e["col"]) is None for e in enemies[:1]
    )


@impossible("spawned on a transmission")
def _(before: Raw, step: Raw) -> object:
    transmission, others = spawned(before, step), step["after"]["transmissions"][:-1]
    return transmission and any(
        transmission.update(row=t["row"], col=t["col"]) is None for t in others[:1]
    )


@impossible("spawned in the line of fire")
def _(before: Raw, step: Raw) -> object:
    transmission, player = spawned(before, step), step["after"]["player"]
    row, col = player["row"], player["col"] + (1 if player["col"] < 5 else -1)
    taken = {place(piece) for piece in step["after"]["enemies"] + step["after"]["transmissions"]}
    free = (row, col) not in taken and not is_block(step["after"]["cells"][row * 6 + col])
    return transmission and free and transmission.update(row=row, col=col) is None


@impossible("one spawn too few")
def _(before: Raw, step: Raw) -> object:
    return spawned(before, step) and step["after"]["transmissions"].pop()


@impossible("one spawn too many")
def _(before: Raw, step: Raw) -> object:
    transmissions = step["after"]["transmissions"]
    return spawned(before, step) and transmissions.append({**transmissions[-1], "row": 3}) is None


@impossible("POLY makes the same type")
def _(before: Raw, step: Raw) -> object:
    old, new = before["enemies"], step["after"]["enemies"]
    same = step["action"] == POLY and len(old) == len(new) > 0
    return same and new[0].update(type=old[0]["type"]) is None


@impossible("WARP to where nothing was")
def _(before: Raw, step: Raw) -> object:
    player, pieces = step["after"]["player"], before["enemies"] + before["transmissions"]
    player["col"] = (player["col"] + 1) % 6
    return step["action"] == WARP and place(player) not in map(place, pieces)


# --- new stages ----------------------------------------------------------------------------------


def in_new_stage(name: str) -> Callable[[Callable[[Raw], object]], None]:
    def register(alter: Callable[[Raw], object]) -> None:
        IMPOSSIBLE[f"new stage: {name}"] = lambda _, s: new_stage(s) and alter(s["after"])

    return register


@in_new_stage("exit in the player's corner")
def _(after: Raw) -> object:
    after["exit"] = [after["player"]["row"], after["player"]["col"]]
    return True


@in_new_stage("exit in another corner than the cell says")
def _(after: Raw) -> object:
    after["exit"] = [5 - i for i in after["exit"]]
    return after["exit"] != [*place(after["player"])]


@in_new_stage("no data siphon in a corner")
def _(after: Raw) -> object:
    corners = [after["cells"][i] for i in (0, 5, 30, 35)]
    return any(c["kind"] == "siphon" and c.update(kind="empty") is None for c in corners)


@in_new_stage("a block that spawns unlike its table")
def _(after: Raw) -> object:
    return more(blocks(after)[0], "spawn")


@in_new_stage("a program twice on the board")
def _(after: Raw) -> object:
    programs = [cell for cell in blocks(after) if "program" in cell]
    same = {"program": programs[0]["program"], "spawn": programs[0]["spawn"]} if programs else {}
    return len(programs) > 1 and programs[1].update(same) is None


@in_new_stage("ten points")
def _(after: Raw) -> object:
    data = [cell for cell in blocks(after) if "points" in cell]
    return data and data[0].update(points=10, spawn=10) is None


@in_new_stage("twelve blocks")
def _(after: Raw) -> object:
    empty = [cell for i, cell in enumerate(after["cells"]) if cell["kind"] == "empty" and i > 6]
    for cell in empty[: 12 - len(blocks(after))]:
        cell.clear()
        cell.update(kind="data", points=1, spawn=1)
    return len(blocks(after)) == 12


@in_new_stage("four blocks")
def _(after: Raw) -> object:
    for block in blocks(after)[4:]:
        block.clear()
        block.update(kind="empty", credits=1)
    return True


@in_new_stage("a block in a corner")
def _(after: Raw) -> object:
    corner = next(cell for cell in after["cells"] if cell["kind"] == "siphon")
    for name in corner:
        blocks(after)[0].setdefault(name, corner[name])
    corner.clear()
    corner.update(kind="data", points=1, spawn=1)
    return True


@in_new_stage("a corner walled in")
def _(after: Raw) -> object:
    taken = {place(piece) for piece in after["enemies"] + after["transmissions"]}
    for at in (1, 6):
        other = next(
            cell for cell in blocks(after) if cell not in map(after["cells"].__getitem__, (1, 6))
        )
        if not is_block(after["cells"][at]):
            i = after["cells"].index(other)
            after["cells"][at], after["cells"][i] = after["cells"][i], after["cells"][at]
    return not taken & {(0, 1), (1, 0)} and is_block(after["cells"][6])


@in_new_stage("no resource on a cell")
def _(after: Raw) -> object:
    empty = next(cell for cell in after["cells"] if cell["kind"] == "empty")
    return empty.pop("credits", 0) or empty.pop("energy", 0)


@in_new_stage("a resource of four")
def _(after: Raw) -> object:
    cell = next(cell for cell in after["cells"] if "credits" in cell)
    return cell.update(credits=4) is None


@in_new_stage("credits and energy on one cell")
def _(after: Raw) -> object:
    cell = next(cell for cell in after["cells"] if "credits" in cell)
    return cell.update(energy=1) is None


@in_new_stage("a resource on the exit")
def _(after: Raw) -> object:
    return next(c for c in after["cells"] if c["kind"] == "exit").update(credits=1) is None


@in_new_stage("a resource on a block")
def _(after: Raw) -> object:
    return blocks(after)[0].update(energy=1) is None


@in_new_stage("a siphoned cell")
def _(after: Raw) -> object:
    return toggle(after["cells"][14], "siphoned")


@in_new_stage("an enemy gone")
def _(after: Raw) -> object:
    return after["enemies"] and after["enemies"].pop()
