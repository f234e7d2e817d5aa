"""How often the loops of a step run that end when the last of a chip's games is done."""

# Mean rounds of a run of each loop, by the name that `control_flow.name_of` gives it: counted in
# 2,048 games of random play, 2026-11-25. More games take little more.
ROUNDS: dict[str, float] = {
    "batch._begin_due": 2.0,
    "batch._first_valid_layout": 1.9,
    "batch._move_enemies": 17.7,
    "batch._newest_saved": 0.7,
    "batch.for_few": 0.6,
    "kernel._begin_due": 2.0,
    "kernel._begin_next": 0.5,
    "kernel._first_valid_layout": 1.5,
    "kernel.play": 34.8,  # of blocks of 1,024 games, as those before
    "movement.exit_distance": 3.8,
    "programs.poly": 1.1,
    "spawning.spawn": 6.8,
    "stage.draw_layout": 10.9,
    "stage.is_valid_layout": 10.1,
    "stage.place_blocks": 10.8,
    "updates": 1.0,  # of the learner: all figures are those of one
}


def rounds_of(path: str) -> float | None:
    """The mean rounds of a loop, by its path in a compiled program; None if it is not known."""
    *_, name, _ = ["", *path.split("/")]
    return ROUNDS.get(name)
