"""`report.html`: one file that a browser opens from the disk, with no network and no server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearloop.files import whole_file
from clearloop.report.contents import Progress, contents
from clearloop.runs import RunDirectory

PAGE = Path(__file__).parent / "page"


def write_report(run: RunDirectory, progress: Progress | None = None) -> Path:
    """Of a finished run. `progress` is told the share that is done."""
    file, page = run.path / "report.html", render(PAGE / "report.html", contents(run, progress))
    with whole_file(file) as out:
        out.write(page.encode())
    return file


def render(template: Path, values: dict[str, Any], **filters: Callable[[Any], Any]) -> str:
    """A page; it may include what stands beside it. What comes from users' files is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template.name).render(values)
