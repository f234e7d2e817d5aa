"""`hackmatrix train`: trains an agent by PPO."""

from hackmatrix.cli.arguments import parse
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.scaling import auto_scale_for_batch_size

INTERRUPTED = 130  # 128 + SIGINT, as shells count

_EXAMPLE = """\
  hackmatrix train --num-envs 2048 --total-timesteps 100_000_000 --run-suffix large
      trains on 100 million actions in 2,048 games, with settings scaled for the large batch"""


def main(argv: list[str]) -> int:
    """Runs the command; exit code 130 if a signal ended the training early (params are saved)."""
    config, given = parse(
        TrainConfig,
        argv,
        command="hackmatrix train",
        purpose="Trains an agent by PPO and exports its params, also when stopped by Ctrl+C.",
        example=_EXAMPLE,
    )
    config, scaled = auto_scale_for_batch_size(config, given)
    for note in scaled:
        _say(f"scaled for the batch of {config.batch_size:,}: {note}")
    total = config.num_updates * config.batch_size
    rounded = " (rounded up to whole updates)" if total > config.total_timesteps else ""
    _say(f"{config.num_updates:,} updates, {total:,} steps{rounded}; loading JAX ...")

    from hackmatrix.training.compilation_cache import enable_compilation_cache
    from hackmatrix.training.loop import train

    enable_compilation_cache()
    outcome = train(config)
    _say(f"{'done' if outcome.finished else 'stopped'} after {outcome.updates:,} updates")
    _say(f"params    {outcome.params}")
    _say(f"next      hackmatrix evaluate {outcome.params}")
    return 0 if outcome.finished else INTERRUPTED


def _say(text: str) -> None:
    print(text, flush=True)
