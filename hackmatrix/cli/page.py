"""`hackmatrix page`: the page as static files, for any web server."""

from dataclasses import dataclass
from pathlib import Path

from hackmatrix.agents.roster.names import A_NETWORK, SHIPPED, resolve
from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option


@dataclass(frozen=True)
class PageExportOptions:
    """The command's options."""

    export: Path | None = option(None, "folder to write; new or empty")
    agent: str = option(
        SHIPPED, f"the agent at the controls: {A_NETWORK}, `random`, `exit` or `scripted`"
    )
    pyodide: Path = option(
        Path("node_modules/pyodide"),
        "folder of the npm package of Pyodide, the Python that runs in a browser",
    )
    public_url: str = option(
        "",
        "address that the folder will have, such as https://NAME/play/: messengers then show links "
        "to it with a picture, and the page shares them wherever it is opened",
    )

    def __post_init__(self) -> None:
        check(self)


def main(argv: list[str]) -> int:
    """Writes the files, and says how to look at them."""
    options = parse(
        PageExportOptions,
        argv,
        command="hackmatrix page",
        purpose="Writes the page as static files: anyone can play, and watch an agent, from any "
        "web server, without Python.",
        example="  hackmatrix page --export site\n"
        "      writes site/index.html to play and site/watch.html with the agent of the package",
    )
    if options.export is None:
        raise UserError("give --export FOLDER")
    from hackmatrix.ui.page.export import export

    agent = resolve(options.agent, fetched=local)
    size, packed = export(options.export, agent, options.pyodide, options.public_url)
    print(
        f"{options.export}: {size / 1e6:.1f} MB, {packed / 1e6:.1f} MB compressed; to look at it: "
        f"python -m http.server --directory {options.export}"
    )
    return 0
