"""PPO on HackMatrix in one file, a training of your own: `python examples/own_ppo.py`."""

import argparse
from typing import Any

import jax
import jax.numpy as jnp
import optax

import hackmatrix

HORIZON, EPOCHS, MINIBATCHES, GAMMA, LAMBDA, CLIP, ENTROPY = 64, 3, 8, 0.998, 0.95, 0.2, 0.01
env = hackmatrix.make(observation="tactical", reward="progress")
optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))


def network(params: Any, seen: Any, mask: Any) -> Any:
    """Log-probabilities of the actions and the game's value, from observations."""
    for weights, bias in params[:-1]:
        seen = jax.nn.relu(seen @ weights + bias)
    logits = seen @ params[-1][0] + params[-1][1]
    return jax.nn.log_softmax(jnp.where(mask, logits[..., 1:], -1e9)), logits[..., 0]


def policy(params: Any, seen: Any, mask: Any, key: Any) -> Any:
    """An action of one game, in the form that `hackmatrix.evaluate` plays with."""
    return jax.random.categorical(key, network(params, seen, mask)[0])


@jax.jit
def update(params: Any, moments: Any, games: Any, key: Any) -> Any:
    """Plays some steps and learns from them; returns also the stages cleared a game."""

    def play(games: Any, key: Any) -> Any:
        (seen, state), keys = games, jax.random.split(key, len(games[0]))
        mask = jax.vmap(env.action_mask)(state)
        log_probs, value = network(params, seen, mask)
        action = jax.vmap(jax.random.categorical)(keys, log_probs)
        *after, reward, done, _, info = jax.vmap(env.step)(keys, state, action)
        stages = done * (info["stage"] - 1 + info["won"])
        return tuple(after), (seen, mask, action, log_probs, value, reward, done, stages)

    def back(ahead: Any, step: Any) -> Any:  # generalised advantage estimation
        (gain, after), (value, reward, done) = ahead, step
        gain = reward + ~done * GAMMA * (after + LAMBDA * gain) - value
        return (gain, value), gain

    def loss(params: Any, seen: Any, mask: Any, action: Any, old: Any, gain: Any, to: Any) -> Any:
        log_probs, value = network(params, seen, mask)
        ratio = jnp.exp(jnp.take_along_axis(log_probs - old, action[:, None], 1)[:, 0])
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        gain = jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(1).mean()
        return jnp.square(value - to).mean() / 2 - gain - ENTROPY * entropy

    def learn(learned: Any, places: Any) -> Any:
        slopes = jax.grad(loss)(learned[0], *(x[places] for x in batch))
        changes, moments = optimizer.update(slopes, learned[1])
        return (optax.apply_updates(learned[0], changes), moments), None

    keys = jax.random.split(key, HORIZON + EPOCHS)
    games, (*kept, value, reward, done, stages) = jax.lax.scan(play, games, keys[:HORIZON])
    last = network(params, games[0], jax.vmap(env.action_mask)(games[1]))[1]
    gain = jax.lax.scan(back, (0 * last, last), (value, reward, done), reverse=True)[1]
    batch = [x.reshape(-1, *x.shape[2:]) for x in (*kept, gain, gain + value)]
    orders = jnp.stack([jax.random.permutation(each, gain.size) for each in keys[HORIZON:]])
    learned, _ = jax.lax.scan(learn, (params, moments), orders.reshape(EPOCHS * MINIBATCHES, -1))
    return *learned, games, stages.sum() / jnp.maximum(done.sum(), 1)


def train(steps: int, num_games: int = 256, seed: int = 0) -> Any:
    """Params after so many steps, and the stages cleared a game in each update."""
    key, sizes = jax.random.key(seed), ((env.feature_size, 256), (256, 256), (256, 29))
    params = [(jax.nn.initializers.he_normal()(key, size), jnp.zeros(size[1])) for size in sizes]
    games = jax.vmap(env.reset)(jax.random.split(key, num_games))
    training, curve = [params, optimizer.init(params), games], []
    for number in range(1, 1 + steps // (num_games * HORIZON)):
        *training, stages = update(*training, jax.random.fold_in(key, number))
        curve.append(float(stages))
        print(f"{number * num_games * HORIZON:,} steps: {stages:.2f} stages cleared a game")
    return training[0], curve


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int, nargs="?", default=2_000_000)
    parser.add_argument("num_games", type=int, nargs="?", default=256, help="played at once")
    parser.add_argument("episodes", type=int, nargs="?", default=1_000, help="of the evaluation")
    given = parser.parse_args()
    told: dict[str, Any] = {"observation": "tactical", "episodes": given.episodes}
    params, _ = train(given.steps, given.num_games)
    print(hackmatrix.evaluate(policy, params=params, **told).table())
