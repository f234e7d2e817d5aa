"""Whether Weights & Biases can be used here, found out without a prompt and without a long wait."""

import os
import socket
import urllib.request
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from hackmatrix.runs.trackers.background import Unavailable


class Access(NamedTuple):
    """W&B as it can be used."""

    wandb: Any  # the module
    offline: str | None  # why nothing can be sent; None: online


def open_wandb(seconds: float) -> Access:
    """Imports W&B, which takes a second, and looks for the login and the host.

    Args:
        seconds: for the host to answer.

    Raises:
        Unavailable: it is not installed, not logged in, or switched off.
    """
    os.environ.setdefault("WANDB_SILENT", "true")  # it speaks before it can be told not to
    wandb = _import_wandb()
    settings = wandb.setup().settings
    if settings.mode == "disabled":
        raise Unavailable("off, as WANDB_MODE says")
    if settings.mode in ("offline", "dryrun"):
        return Access(wandb, "offline, as WANDB_MODE says")
    if not wandb.login(prompt=False, verify=False):
        wandb.teardown()  # its process would wait for nothing
        raise Unavailable("not logged in: `wandb login`, or an API key in WANDB_API_KEY, does it")
    url = settings.base_url
    if not reachable(url, _proxy(url, settings), seconds):
        return Access(wandb, f"{urlsplit(url).netloc} can't be reached")
    return Access(wandb, None)


def _import_wandb() -> Any:
    try:
        wandb = import_module("wandb")
    except ImportError:
        wandb = None
    if not hasattr(wandb, "setup"):  # a folder of W&B's files passes for a module
        raise Unavailable("not installed: pip install 'hackmatrix[wandb]' brings it")
    return wandb


def reachable(url: str, proxy: str | None, seconds: float) -> bool:
    """Whether the host of `url`, or the proxy that leads to it, takes connections."""
    target = urlsplit(proxy or url)
    port = target.port or (443 if target.scheme == "https" else 80)
    try:
        socket.create_connection((target.hostname or "", port), seconds).close()
    except OSError:
        return False
    return True


def _proxy(url: str, settings: Any) -> str | None:
    target = urlsplit(url)
    if urllib.request.proxy_bypass(target.hostname or ""):
        return None
    proxies = urllib.request.getproxies()
    proxy = getattr(settings, f"{target.scheme}_proxy") or proxies.get(target.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
