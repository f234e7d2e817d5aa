"""The files of settings that come with the package, which are known by their names."""

import difflib
from pathlib import Path

from hackmatrix.core.errors import UserError

CONFIGS = Path(__file__).parents[1] / "configs"
CURRICULA = CONFIGS / "curricula"


def config_file(path: Path, folder: Path = CONFIGS) -> Path:
    """The file that a user means: by a name one of the package's, else one at this path.

    The path that a file had in the repository, `configs/best.yaml`, means it too, unless there is
    such a file.

    Args:
        path: what the user has given.
        folder: of the package's files.

    Raises:
        UserError: it is a bare word, neither one of the names nor a file.
    """
    names = _files(folder)
    is_word = path.name == str(path) and not path.suffix
    if path.stem in names and (is_word or (path.parent == Path("configs") and not path.exists())):
        return names[path.stem]
    if is_word and not path.exists():
        near = difflib.get_close_matches(str(path), names, n=1)
        hint = f"did you mean {near[0]}? There are" if near else "there are"
        known = ", ".join(names)
        raise UserError(f"{path}: no file, and no settings of this name; {hint} {known}")
    return path


def describe_configs(folder: Path = CONFIGS) -> str:
    """The names, each with the line with which its file begins."""
    width = max(map(len, _files(folder)))
    first = {name: path.read_text().partition("\n")[0] for name, path in _files(folder).items()}
    return "\n".join(f"{name:<{width}}  {line.lstrip('# ')}" for name, line in first.items())


def _files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
