from hackmatrix.reporting.metrics import METRICS as _ALL

METRICS = tuple(
    m
    for m in _ALL
    if not m.name.startswith("train/") and m.name not in ("eval/mean_return", "eval/mean_length")
)
