"""The page's words: what programs do, why an action is not possible, what happened."""

from collections.abc import Iterable, Iterator
from typing import Any

from hackmatrix.game.engine.programs import applicable
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import NEIGHBOUR, col, row
from hackmatrix.game.rules.programs import PROGRAMS, Program, ProgramId
from hackmatrix.game.rules.stages import LAST_STAGE

# By program: what it does, and what it needs besides its cost ("" for nothing).
PROGRAM_WORDS = {
    "PUSH": ("Moves every enemy one cell away from you.", "no enemy on the board"),
    "PULL": ("Moves every enemy one cell towards you.", "no enemy on the board"),
    "CRASH": (
        "Clears the 8 cells around you of blocks, enemies and transmissions.",
        "nothing to clear in the 8 cells around you",
    ),
    "WARP": (
        "Destroys a random enemy or transmission and puts you in its place.",
        "no enemy and no transmission on the board",
    ),
    "POLY": ("Turns every enemy into another kind; damage stays.", "no enemy on the board"),
    "WAIT": ("Ends your turn.", ""),
    "DEBUG": ("Damages enemies that stand on blocks.", "no enemy stands on a block"),
    "ROW": ("Damages all enemies in your row, through blocks.", "no enemy in your row"),
    "COL": ("Damages all enemies in your column, through blocks.", "no enemy in your column"),
    "UNDO": (
        "Goes back to the end of the last enemy turn; used again, to the end of the one before.",
        "no turn of this stage to go back to",
    ),
    "STEP": ("The next enemy turn does not happen.", ""),
    "SIPH+": ("Gives a data siphon.", ""),
    "EXCH": ("Changes 4 credits into 4 energy.", "needs 4 credits"),
    "SHOW": (
        "Shows cryptogs and what transmissions will become, for the rest of this stage.",
        "it is on already",
    ),
    "RESET": ("Restores your hp to 3.", "your hp is full"),
    "CALM": ("No more transmissions come by themselves in this stage.", "it is on already"),
    "D_BOM": ("Destroys the nearest daemon and does 1 damage to enemies around it.", "no daemon"),
    "DELAY": ("Every transmission takes 3 turns longer.", "no transmission on the board"),
    "ANTI-V": ("1 damage to every virus.", "no virus on the board"),
    "SCORE": (
        f"Adds {LAST_STAGE} minus the stage's number to your score.",
        "gives nothing in the last stage",
    ),
    "REDUC": (
        "Every block that is not siphoned yet brings one transmission fewer.",
        "no block left that would bring any",
    ),
    "ATK+": ("1 more damage with every attack, for good.", "used twice in this stage already"),
    "HACK": ("Damages enemies on siphoned cells.", "no cell is siphoned"),
}

# Keys in the order of the table; the last ones are for programs to come. Letters left over are S
# (siphon), N (new game) and T (threats).
KEYS = "plcwyabroueixvhmdzkfgjq" + "-=;0`"
PROGRAM_KEYS = dict(zip(PROGRAM_WORDS, KEYS, strict=False))

_ENDINGS = {  # of a player, of an agent, of a game of which it is not known who played
    "won": ("You have won!", "The agent has won.", "The game is won."),
    "died": ("You died.", "The agent died.", "The player died."),
    "invalid_action": ("The game ended by an invalid action.",) * 3,
}


def why_not(state: State, action: int) -> str:
    """Why an action that is not valid is not possible."""
    if state.over is not None:
        return "the game is over"
    if action < NUM_DIRECTIONS:
        at_edge = NEIGHBOUR[state.player.cell][action] is None
        return "the board ends here" if at_edge else "a block is in the way"
    if action == SIPHON:
        return "no data siphon: walk onto one to pick it up"
    program_index = action - FIRST_PROGRAM
    program = PROGRAMS[program_index]
    if program_index not in state.owned:
        return "not owned: siphon a block that holds it"
    if lacking := _lacking(state, program):
        return lacking
    if not applicable(state, ProgramId(program_index)):
        return PROGRAM_WORDS[program.name][1]
    return ""


def _lacking(state: State, program: Program) -> str:
    player = state.player
    wants = [
        f"{cost} {name} (you have {has})"
        for name, cost, has in (
            ("credits", program.credits, player.credits),
            ("energy", program.energy, player.energy),
        )
        if has < cost
    ]
    return "needs " + " and ".join(wants) if wants else ""


def at(cell: int) -> str:
    """A cell as the board's margins number it: row, column."""
    return f"{row(cell)},{col(cell)}"


def describe_events(events: Iterable[dict[str, Any]]) -> list[str]:
    """Visible events in words, one short clause each."""
    return [clause for event in events for clause in _clauses(event)]


def _clauses(event: dict[str, Any]) -> Iterator[str]:
    kind, piece = event["kind"], event.get("piece", "enemy")
    cell, to = event.get("cell"), event.get("to")
    match kind:
        case "player_moved":
            yield f"you move to {at(event['to'])}"
        case "picked_up":
            yield "you pick up a data siphon"
        case "attacked":
            yield f"{piece} {at(event['cell'])} takes {event['amount']} damage"
        case "destroyed":
            yield f"{piece} {at(event['cell'])} is destroyed"
        case "program_ran":
            yield f"{piece.upper()} runs"
        case "block_removed":
            yield f"block {at(event['cell'])} is removed"
        case "changed_type":
            yield f"an enemy at {at(event['cell'])} becomes a {piece}"
        case "undone":
            yield "back to the saved state"
        case "enemy_turn_skipped":
            yield "the enemy turn does not happen"
        case "landed":
            yield (
                f"{piece} arrives at {at(event['cell'])}"
                if "piece" in event
                else (f"the transmission at {at(event['cell'])} is gone: a cryptog hides")
            )
        case "enemy_moved" if cell is None:
            yield f"{piece} appears at {at(event['to'])}"
        case "enemy_moved" if to is None:
            yield f"{piece} {at(event['cell'])} goes out of sight"
        case "enemy_moved":
            yield f"{piece} moves {at(event['cell'])} to {at(event['to'])}"
        case "hit":
            yield f"{piece} {at(event['cell'])} hits you"
        case "spawned":
            yield f"a transmission comes at {at(event['cell'])}"
        case "stage_completed":
            yield f"stage {event['amount']} is done"
        case "won":
            yield "you have won"
        case "died":
            yield "you died"


def ending(over: str | None, *, by_you: bool, by_agent: bool) -> str:
    """The game's end, in a sentence about who took the last action; empty while it is running."""
    if not over:
        return ""
    of_you, of_agent, of_anybody = _ENDINGS[over]
    return of_you if by_you else of_agent if by_agent else of_anybody
