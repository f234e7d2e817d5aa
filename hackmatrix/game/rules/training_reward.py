"""The rewards that learners may have in place of section 11: what they pay."""

REWARDS = ("game", "progress")  # to train with, in all engines and clients
TRAINING_REWARDS = (
    *REWARDS,
    "stages",
    "programs",
    "win",
    "score",
)  # and those that training makes of them
WIN_WORTH = 20.0  # points of score that a win alone is worth to the reward `score`
STAGE, WIN, DEATH = 1.0, 5.0, 1.0
HP, SIPHON, RESOURCE = 0.3, 0.15, 0.03  # the potential of one
PROGRAM_WORTH = 0.3  # of each one owned, in `programs` alone, unless another is asked for
MAX_SIPHONS, HOARD = 3, 20  # data siphons held, and credits or energy, count up to this
MAX_PROGRAMS = 4  # likewise
