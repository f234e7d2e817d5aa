"""The reward `progress`, which learners may have in place of section 11: what it pays."""

REWARDS = ("game", "progress")  # to train with
STAGE, WIN, DEATH = 1.0, 5.0, 1.0
HP, SIPHON, RESOURCE = 0.3, 0.15, 0.03  # the potential of one
MAX_SIPHONS, HOARD = 3, 20  # data siphons held, and credits or energy, count up to this
