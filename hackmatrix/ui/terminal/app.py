"""The game in a terminal with panels, a course of the game to click on, and the mouse: Textual."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message as Event
from textual.widgets import Button, Footer, Select, Static

from hackmatrix.game.drawing.theme import COLOURS
from hackmatrix.game.rules.actions import NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import NEIGHBOUR, SIZE
from hackmatrix.ui.session import navigation as travel
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS
from hackmatrix.ui.session.session import Message, Session
from hackmatrix.ui.terminal import panels
from hackmatrix.ui.terminal.keys import HELP, PACE, WATCH_HELP, message_of
from hackmatrix.ui.terminal.screen_text import WIDTH, board, status_numbers

_HIGH = 36  # lines of a terminal from which on rows of the board stand apart
_LOW = 26  # and below which the course of the game is one line
# Keys that the footer does not name, by Textual's names.
_HIDDEN = {
    **{f"{letter},{letter.upper()}": letter for letter in "abcdefghijklmnopqrsuvwxyz"},
    **{name: name for name in ("up", "down", "left", "right", "home", "end", *"123456789")},
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "apostrophe": "'",
    "minus": "-",
    "equals_sign": "=",
    "semicolon": ";",
    "0": "0",
    "grave_accent": "`",
}


class TextPanel(Static):
    """Something drawn, that tells where it is clicked."""

    class Clicked(Event):
        """A click on a panel, in characters from its corner."""

        def __init__(self, panel: str | None, x: int, y: int) -> None:
            super().__init__()
            self.panel, self.x, self.y = panel, x, y

    def on_click(self, event: events.Click) -> None:
        """Tells it."""
        if (at := event.get_content_offset(self)) is not None:
            self.post_message(self.Clicked(self.id, at.x, at.y))


class Watch(App[None]):
    """A session on the screen."""

    CSS = f"""
    Screen {{ background: {COLOURS["background"]}; color: {COLOURS["text"]}; }}
    #left {{ width: {(WIDTH + 1) * SIZE + 2}; padding: 0 1; }}
    #news {{ height: 1; padding: 0 1; }}
    #course {{ height: auto; padding: 0 1; }}
    #suggestions, #programs {{ text-wrap: nowrap; text-overflow: ellipsis; }}
    .title {{ color: {COLOURS["label"]}; margin-top: 1; }}
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("comma", "press(',')", "Back"),
        Binding("full_stop", "press('.')", "On"),
        Binding("space", "press(' ')", "Play, pause"),
        Binding("enter", "press('\\n')", "Its move"),
        Binding("t", "press('t')", "Threats"),
        Binding("question_mark", "keys", "Keys"),
        Binding("ctrl+c,ctrl+d", "quit", "End"),
        Binding("escape", "leave", show=False),
        *(Binding(name, f"press({key!r})", show=False) for name, key in _HIDDEN.items()),
    ]

    def __init__(self, session: Session, at_end: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.session = session
        self.at_end = at_end
        self.answer: dict[str, Any] = {}  # the last one with a position
        self.threats = True
        self.is_playing = False
        self.is_asking = False

    def compose(self) -> ComposeResult:
        """The panels."""
        with Horizontal():
            with Vertical(id="left"):
                yield Static(id="numbers")
                yield TextPanel(id="board")
            with VerticalScroll(id="right", can_focus=False):
                if self.session.controls:
                    names = [(name, name) for name in self.session.agents]
                    yield Select(
                        names, value=self.session.controls, allow_blank=False, compact=True
                    )
                    yield TextPanel(id="suggestions")
                    yield Button("Ask all agents", id="others", compact=True)
                    yield Static(id="opinions")
                yield Static("Programs", classes="title")
                yield TextPanel(id="programs")
                yield Static("Last step", classes="title")
                yield Static(id="last")
        yield Static(id="news")
        yield TextPanel(id="course")
        yield Footer()

    def on_mount(self) -> None:
        """Begins."""
        self.set_interval(PACE, self._play_on)
        self.call_after_refresh(self._ask, {"do": "hello"})

    def on_unmount(self) -> None:
        """Ends; the process waits for threads that still ask."""
        self.at_end()

    def on_resize(self) -> None:
        """Draws it anew in the new size."""
        if self.answer:
            self.call_after_refresh(self._show)

    # --- what the player does --------------------------------------------------------------------

    def action_press(self, key: str) -> None:
        """Does what a key does, named as `message_of` knows it, unless a list has the focus."""
        if not self.answer or self.focused is not None:
            return
        self.is_playing = key == " " and self.session.controls is not None and not self.is_playing
        if key == "t":
            self.threats = not self.threats
            self._show()
        elif not self.is_asking and (message := message_of(self.session, key)) is not None:
            self._ask(message)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of an agent are there only with one."""
        return self.session.controls is not None or parameters not in ((" ",), ("\n",))

    def on_text_panel_clicked(self, click: TextPanel.Clicked) -> None:
        """Acts on the cell, jumps to the step, takes the suggestion, runs the program."""
        message: Message | None = None
        if click.panel == "board":
            message = self._on_board(
                click.x // (WIDTH + 1), click.y // (4 if self._is_high() else 3)
            )
        elif click.panel == "course":
            line = travel.line(self.session)
            share = click.x / max(self.query_one("#course").content_size.width - 1, 1)
            message = {"do": "go", "node": line[round(min(share, 1) * (len(line) - 1))]}
        elif click.panel == "suggestions" and click.y:
            message = message_of(self.session, str(click.y))
        elif click.panel == "programs" and click.y < len(self.answer["seen"]["owned"]):
            name = [name for name in PROGRAM_KEYS if name in self.answer["seen"]["owned"]][click.y]
            message = message_of(self.session, PROGRAM_KEYS[name])
        self.is_playing = False
        if message is not None and not self.is_asking:
            self._ask(message)

    def _on_board(self, column: int, line: int) -> Message | None:
        cell = (SIZE - 1 - line) * SIZE + column
        player = self.answer["seen"]["player"]
        here = player["row"] * SIZE + player["col"]
        if not (0 <= column < SIZE and 0 <= line < SIZE):
            return None
        if cell == here:
            return {"do": "act", "action": SIPHON}
        for action in range(NUM_DIRECTIONS):
            struck = self.answer["actions"][action].get("cells", ())
            if cell == NEIGHBOUR[here][action] or cell in struck:
                return {"do": "act", "action": action}
        return None

    def on_select_changed(self, event: Select.Changed) -> None:
        """Gives the controls to another agent."""
        self.set_focus(None)
        if self.answer and event.value != self.session.controls:
            self._ask({"do": "control", "agent": event.value})

    def on_button_pressed(self) -> None:
        """Asks all agents."""
        self.set_focus(None)
        self._ask({"do": "others"})

    def action_leave(self) -> None:
        """Leaves a list or a button."""
        self.set_focus(None)

    def action_keys(self) -> None:
        """Tells the keys."""
        self.notify(
            WATCH_HELP if self.session.controls else HELP, title="Keys", timeout=12, markup=False
        )

    # --- the session -----------------------------------------------------------------------------

    def _play_on(self) -> None:
        if self.is_playing and not self.is_asking:
            self._ask({"do": "agent"})

    def _ask(self, message: Message) -> None:
        """Asks the session in a thread: an agent that searches takes its time."""
        self.is_asking = True
        self.run_worker(self._answer(message))

    async def _answer(self, message: Message) -> None:
        slow = self.set_timer(0.5, lambda: self.query_one("#news", Static).update("One moment..."))
        answer = await asyncio.to_thread(self.session.handle, message)
        slow.stop()
        self.is_asking = False
        if "others" in answer:
            self.query_one("#opinions", Static).update(panels.opinions(answer["others"]))
        elif "error" not in answer:
            self.answer = answer
            self.is_playing &= message["do"] == "agent" and bool(answer.get("added"))
            self._show()
        clauses = self.answer["last"]["told"] if self.answer["last"] else []
        words = answer.get("error") or self.answer["ending"] or ", ".join(clauses)
        self.query_one("#news", Static).update(Text(words))

    # --- the screen ------------------------------------------------------------------------------

    def _is_high(self) -> bool:
        return self.size.height >= _HIGH

    def _show(self) -> None:
        state, visible = self.session.tree.state(self.session.at), self.answer["seen"]
        course = self.query_one("#course", Static)
        shown: dict[str, Any] = {
            "numbers": status_numbers(state),
            "board": board(state, threats=self.threats, spaced=self._is_high()),
            "programs": panels.programs(visible["owned"], self.answer["actions"]),
            "last": panels.last_step(self.answer["last"]),
            "course": panels.course(
                self.session, course.content_size.width, short=self.size.height < _LOW
            ),
        }
        if self.session.controls:
            odds = self.session.odds.get(self.session.at)
            shown["suggestions"] = panels.suggestions(self.answer.get("agent"), odds)
            shown["opinions"] = ""
        for name, what in shown.items():
            self.query_one(f"#{name}", Static).update(what)


def run(session: Session, at_end: Callable[[], None]) -> None:
    """Plays or watches until Ctrl+C; then `at_end` frees threads that still wait."""
    Watch(session, at_end).run()
