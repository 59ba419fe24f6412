"""What the site adds to the pages of `docs/`: formulas without scripts, and links that stay within the site.

The pages are read in three places: in an editor, on a code host, and here. So they link to source files by
relative paths, and write formulas between dollar signs. The site has no source files; a link to one becomes
its path, after a check that it exists.
"""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]

_FETCHED = "https://unpkg.com/iframe-worker/shim"
_DIALOG = 'data-md-component="search" role="dialog"'

_FENCED = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)$)", re.MULTILINE | re.DOTALL)
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)]*)?\)")
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"\$`(.+?)`\$")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links that leave `docs/`, and formulas by MathML; what stands in code stays."""
    folder = (ROOT / "docs" / page.file.src_path).parent
    parts = _FENCED.split(markdown)  # prose and fenced blocks in turn
    parts[::2] = [_prose(text, folder) for text in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Replace the theme's script for searching in a folder, by ours, and name its dialog."""
    output = output.replace(_DIALOG, f'{_DIALOG} aria-label="Search"')
    return output.replace(_FETCHED, get_relative_url("assets/worker.js", page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page of unknown addresses."""
    return output_content.replace(_FETCHED, "/assets/worker.js")


def _prose(text: str, folder: Path) -> str:
    text = _OUTSIDE.sub(lambda found: _local(found, folder), text)
    text = _DISPLAY.sub(lambda found: f"\n{convert(found[1].strip(), display='block')}\n", text)
    return _INLINE.sub(lambda found: convert(found[1]), text)


def _local(found: re.Match[str], folder: Path) -> str:
    target = (folder / found[2]).resolve()
    if not target.exists():
        raise PluginError(f"{found[2]} does not exist (linked from {folder.name}/)")
    if target.is_relative_to(ROOT / "docs"):
        return found[0]
    path = target.relative_to(ROOT).as_posix()
    label = found[1].strip("`")
    return f"`{path}`" if label in (path, target.name) else f"{found[1]} (`{path}`)"
