"""Section 11: the 15 parts of the reward, in integer units of 0.005."""

UNIT = 0.005

REWARD_PARTS = (
    "step_penalty",
    "stage_completion",
    "score_gain",
    "kills",
    "data_siphon",
    "distance_shaping",
    "victory",
    "death_penalty",
    "resource_gain",
    "resource_holding",
    "damage_penalty",
    "hp_recovery",
    "siphon_quality",
    "program_waste",
    "siphon_death_penalty",
)

STEP = -2
STAGE_COMPLETION = (200, 400, 800, 1_600, 3_200, 6_400, 12_800, 20_000)  # of stages 1..8
SCORE_GAIN = 100  # per point
KILL = 60
DATA_SIPHON = 200
DISTANCE = 10  # per cell nearer to the exit
VICTORY = 100_000
VICTORY_SCORE = 20_000  # per point
# DEATH[stage - 1]: minus half of what the completed stages paid.
DEATH = tuple(-sum(STAGE_COMPLETION[:done]) // 2 for done in range(len(STAGE_COMPLETION)))
RESOURCE_GAIN = 10  # per credit or energy
RESOURCE_HOLDING = 2  # per credit or energy
DAMAGE = -200  # per hp
HP_RECOVERY = 200  # per hp
SIPHON_QUALITY = -5  # per credit or energy missed
PROGRAM_WASTE = -60
SIPHON_DEATH = -2_000
