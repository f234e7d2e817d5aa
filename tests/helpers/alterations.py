"""Recorded steps altered in one field, and in what chance cannot do: conformance refuses them."""

from collections.abc import Callable

from recorder import PART_NAMES
from recordings import Raw

from hackmatrix.game.rules.rewards import REWARD_PARTS

# Changes a step in place, given the state before it; returns whether the step is one to change so.
Alteration = Callable[[Raw, Raw], object]
Register = Callable[[Alteration], Alteration]

SIPHON, WARP, POLY, WAIT = 4, 8, 9, 10
PARTS = [PART_NAMES.get(name, name) for name in REWARD_PARTS]  # as the recordings name them
ALTERATIONS: dict[str, Alteration] = {}


def alteration(name: str) -> Register:
    """Put an alteration into the table."""

    def register(alter: Alteration) -> Alteration:
        ALTERATIONS[name] = alter
        return alter

    return register


def more(thing: Raw, name: str, by: int = 1) -> bool:
    thing[name] = thing.get(name, 0) + by
    return True


def toggle(thing: Raw, name: str) -> bool:
    thing[name] = not thing.get(name, False)
    return True


def place(thing: Raw) -> tuple[int, int]:
    return thing["row"], thing["col"]


def is_block(cell: Raw) -> bool:
    return cell["kind"] in ("data", "program", "question")


def blocks(after: Raw) -> list[Raw]:
    return [cell for cell in after["cells"] if is_block(cell)]


def new_stage(step: Raw) -> bool:
    return bool(step["stage_advanced"] and not step["won"])


# --- every field of a state ----------------------------------------------------------------------

for _name in ("hp", "credits", "energy", "siphons", "attack", "score"):
    ALTERATIONS[f"player {_name}"] = lambda _, s, name=_name: more(s["after"]["player"], name)
for _name in ("turn", "atk_uses", "interval", "next_task", "pending", "history"):
    ALTERATIONS[_name] = lambda _, s, name=_name: more(s["after"], name)
for _name in ("show", "calm", "step"):
    ALTERATIONS[_name] = lambda _, s, name=_name: toggle(s["after"]["flags"], name)
for _name in ("points", "spawn"):
    ALTERATIONS[f"block {_name}"] = lambda _, s, name=_name: any(
        more(cell, name) for cell in blocks(s["after"])[:1]
    )
for _name in ("credits", "energy", "siphoned", "center"):
    ALTERATIONS[f"cell {_name}"] = lambda _, s, name=_name: (
        not new_stage(s)
        and (toggle if name in ("siphoned", "center") else more)(s["after"]["cells"][14], name)
    )
for _name in ("hp", "disabled"):
    ALTERATIONS[f"enemy {_name}"] = lambda _, s, name=_name: any(
        more(enemy, name) for enemy in s["after"]["enemies"][-1:]
    )
for _name in ("stunned", "from_task", "from_siphon"):
    ALTERATIONS[f"enemy {_name}"] = lambda _, s, name=_name: any(
        toggle(enemy, name) for enemy in s["after"]["enemies"][-1:]
    )
for _name in ("from_task", "from_siphon"):
    ALTERATIONS[f"transmission {_name}"] = lambda _, s, name=_name: any(
        toggle(transmission, name) for transmission in s["after"]["transmissions"][-1:]
    )
ALTERATIONS["transmission turns"] = lambda _, s: any(
    more(transmission, "turns") for transmission in s["after"]["transmissions"][:1]
)


@alteration("stage")
def _(_before: Raw, step: Raw) -> object:
    return step["after"]["stage"] < 8 and more(step["after"], "stage")


@alteration("exit")
def _(_before: Raw, step: Raw) -> object:
    step["after"]["exit"][0] = 5 - step["after"]["exit"][0]
    return True


@alteration("order of the programs owned")
def _(_before: Raw, step: Raw) -> object:
    step["after"]["owned"].reverse()
    return len(step["after"]["owned"]) > 1


@alteration("a program not owned")
def _(_before: Raw, step: Raw) -> object:
    return step["after"]["owned"] and step["after"]["owned"].pop() is not None


@alteration("where a cryptog was last seen")
def _(_before: Raw, step: Raw) -> object:
    cryptogs = [e for e in step["after"]["enemies"] if e["type"] == "cryptog"]
    for cryptog in cryptogs[:1]:
        cryptog["last"][0] = 5 - cryptog["last"][0]
    return cryptogs


@alteration("an enemy that is not there")
def _(_before: Raw, step: Raw) -> object:
    return step["after"]["enemies"] and step["after"]["enemies"].pop()


# --- the step ------------------------------------------------------------------------------------

for _name in PARTS:
    ALTERATIONS[f"reward {_name}"] = lambda _, s, name=_name: (
        s["reward"][name] and s["reward"].update({name: s["reward"][name] + 0.005}) is None
    )
ALTERATIONS["a part where there is none"] = lambda _, s: (
    not s["reward"]["kills"] and s["reward"].update(kills=0.3) is None
)
ALTERATIONS["a part that is no multiple of 0.005"] = lambda _, s: (
    s["reward"].update(step_penalty=-0.0101) is None
)
for _name in ("success", "done", "stage_advanced", "won", "died"):
    ALTERATIONS[_name] = lambda _, s, name=_name: toggle(s, name)
ALTERATIONS["one valid action less"] = lambda _, s: s["valid"] and s["valid"].pop() is not None
ALTERATIONS["one valid action more"] = lambda _, s: (
    27 not in s["valid"] and s["valid"].append(27) is None
)
ALTERATIONS["order of the valid actions"] = lambda _, s: (
    len(s["valid"]) > 1 and s["valid"].reverse() is None
)


@alteration("action")
def _(_before: Raw, step: Raw) -> object:
    step["action"] = SIPHON
    return step["action"] not in step["valid"]


@alteration("no enemy order")
def _(before: Raw, step: Raw) -> object:
    can_act = [e for e in before["enemies"] if not e.get("stunned") and not e.get("disabled")]
    return step["action"] == WAIT and len(can_act) > 1 and step.pop("order", None)


@alteration("an enemy twice in the order")
def _(_before: Raw, step: Raw) -> object:
    order = step.get("order", [[]])[0]
    return len(order) > 3 and order.append(order.pop(0)) is None and order.append(order[0]) is None


# --- what chance cannot do -----------------------------------------------------------------------


def spawned(before: Raw, step: Raw) -> Raw | None:
    """The last transmission of a step, if it is new."""
    new = len(step["after"]["transmissions"]) > len(before["transmissions"])
    return step["after"]["transmissions"][-1] if new else None


@alteration("spawned on an enemy")
def _(before: Raw, step: Raw) -> object:
    transmission, enemies = spawned(before, step), step["after"]["enemies"]
    return transmission and any(
        transmission.update(row=e["row"], col=e["col"]) is None for e in enemies[:1]
    )


@alteration("one spawn too few")
def _(before: Raw, step: Raw) -> object:
    return spawned(before, step) and step["after"]["transmissions"].pop()


@alteration("one spawn too many")
def _(before: Raw, step: Raw) -> object:
    transmissions = step["after"]["transmissions"]
    return spawned(before, step) and transmissions.append({**transmissions[-1], "row": 3}) is None


@alteration("POLY makes the same type")
def _(before: Raw, step: Raw) -> object:
    old, new = before["enemies"], step["after"]["enemies"]
    same = step["action"] == POLY and len(old) == len(new) > 0
    return same and new[0].update(type=old[0]["type"]) is None


@alteration("WARP to where nothing was")
def _(before: Raw, step: Raw) -> object:
    player, pieces = step["after"]["player"], before["enemies"] + before["transmissions"]
    player["col"] = (player["col"] + 1) % 6
    return step["action"] == WARP and place(player) not in map(place, pieces)


# --- new stages ----------------------------------------------------------------------------------


def in_new_stage(name: str) -> Callable[[Callable[[Raw], object]], None]:
    def register(alter: Callable[[Raw], object]) -> None:
        ALTERATIONS[f"new stage: {name}"] = lambda _, s: new_stage(s) and alter(s["after"])

    return register


@in_new_stage("exit in the player's corner")
def _(after: Raw) -> object:
    after["exit"] = [after["player"]["row"], after["player"]["col"]]
    return True


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


@in_new_stage("a resource of four")
def _(after: Raw) -> object:
    cell = next(cell for cell in after["cells"] if "credits" in cell)
    return cell.update(credits=4) is None
