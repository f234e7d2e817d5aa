"""Recorded steps altered in one field, as the tests of conformance need them: the fields."""

from collections.abc import Callable

from recordings import Raw

# Changes a step in place, given the state before it; returns whether the step is one to change so.
Alteration = Callable[[Raw, Raw], object]
Register = Callable[[Alteration], Alteration]

SIPHON, WARP, POLY, WAIT = 4, 8, 9, 10
PARTS = (  # as the recordings name them
    "step_penalty",
    "stage_completion",
    "score_gain",
    "kills",
    "data_siphon",
    "distance",
    "victory",
    "death",
    "resource_gain",
    "resource_holding",
    "damage",
    "hp_recovery",
    "siphon_quality",
    "program_waste",
    "siphon_death",
)
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


@alteration("player off the board")
def _(_before: Raw, step: Raw) -> object:
    step["after"]["player"]["row"] = 6
    return True


@alteration("player's cell")
def _(_before: Raw, step: Raw) -> object:
    player = step["after"]["player"]
    player["col"] = (player["col"] + 1) % 6
    return step["action"] != WARP


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


@alteration("content of a cell")
def _(_before: Raw, step: Raw) -> object:
    cell = step["after"]["cells"][14]
    return cell["kind"] == "empty" and cell.update(kind="siphon") is None


@alteration("content of a question block")
def _(before: Raw, step: Raw) -> object:
    old = [cell for cell in before["cells"] if cell["kind"] == "question"]
    cells = [cell for cell in step["after"]["cells"] if cell in old]
    return not new_stage(step) and any(toggle(cell, "is_data") for cell in cells[:1])


@alteration("program of a block")
def _(before: Raw, step: Raw) -> object:
    cells = [
        cell for cell in blocks(step["after"]) if "program" in cell and cell in before["cells"]
    ]
    return not new_stage(step) and any(more(cell, "program", -1) for cell in cells[:1])


@alteration("enemy's cell")
def _(_before: Raw, step: Raw) -> object:
    enemies = step["after"]["enemies"]
    return any(enemy["row"] < 5 and more(enemy, "row") for enemy in enemies[:1])


@alteration("enemy's type")
def _(_before: Raw, step: Raw) -> object:
    enemies = [e for e in step["after"]["enemies"] if e["type"] == "virus"]
    return step["action"] != POLY and any(e.update(type="glitch") is None for e in enemies[:1])


@alteration("where a cryptog was last seen")
def _(_before: Raw, step: Raw) -> object:
    cryptogs = [e for e in step["after"]["enemies"] if e["type"] == "cryptog"]
    for cryptog in cryptogs[:1]:
        cryptog["last"][0] = 5 - cryptog["last"][0]
    return cryptogs


@alteration("order of the enemies")
def _(_before: Raw, step: Raw) -> object:
    step["after"]["enemies"].reverse()
    return len({e["type"] for e in step["after"]["enemies"]}) > 1


@alteration("an enemy that is not there")
def _(_before: Raw, step: Raw) -> object:
    return step["after"]["enemies"] and step["after"]["enemies"].pop()


@alteration("order of the transmissions")
def _(before: Raw, step: Raw) -> object:
    step["after"]["transmissions"].reverse()
    return len({place(t) for t in before["transmissions"]}) > 1 < len(
        step["after"]["transmissions"]
    ) and not new_stage(step)


@alteration("type of a transmission")
def _(before: Raw, step: Raw) -> object:
    kept = [t for t in step["after"]["transmissions"] if t in before["transmissions"]]
    for transmission in kept[:1]:
        transmission["type"] = "glitch" if transmission["type"] != "glitch" else "daemon"
    return kept


@alteration("cell of a transmission")
def _(before: Raw, step: Raw) -> object:
    kept = [t for t in step["after"]["transmissions"] if t in before["transmissions"]]
    return any(t["row"] < 5 and more(t, "row") for t in kept[:1])


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
