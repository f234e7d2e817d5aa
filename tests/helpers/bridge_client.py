"""A client of the game process, without the process."""

import json
from typing import Any

from hackmatrix.integrations.process.session import ProcessSession

Json = dict[str, Any]


class Client:
    """Asks a session and takes its answers as another process would: through JSON."""

    def __init__(self, **options: Any) -> None:
        self.log: list[str] = []
        self.session = ProcessSession(self.log.append, **options)

    def ask(self, action: str, **fields: Any) -> Json:
        return self.send(json.dumps({"action": action, **fields}).encode())

    def send(self, line: bytes) -> Json:
        answer: Json = json.loads(self.session.answer(line))
        return answer

    def set_state(self, row: int, col: int, /, stage: int = 1, **state: Any) -> Json:
        player = {"row": row, "col": col, **state.pop("player", {})}
        return self.ask("setState", state={"player": player, "stage": stage, **state})

    def state(self) -> Any:
        game = self.session._game
        return game and game.to_dict()


def exactly(answer: Any) -> str:
    """As text: 1, 1.0 and true are three things here."""
    return json.dumps(answer, sort_keys=True)
