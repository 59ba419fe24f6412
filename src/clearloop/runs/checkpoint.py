"""Plain data with arrays in it, in one file, to the bit: arrays as tensors, the rest as JSON.

In the JSON every dictionary, tuple and array stands in an object of one key that says which it is:
`{"table": {…}}`, `{"tuple": […]}`, `{"array": NAME}`, `{"scalar": NAME}`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.files import whole_file

Arrays = dict[str, NDArray[Any]]

_TEXT = "state"  # the key of the JSON in the file's metadata


def write_state(state: dict[str, Any], path: Path) -> None:
    """Dictionaries with text for keys, lists, tuples, text, numbers, None and arrays of numbers."""
    from safetensors.numpy import save

    arrays: Arrays = {}
    text = json.dumps(_taken_apart(state, "", arrays))
    content: bytes = save(arrays, metadata={_TEXT: text})
    with whole_file(path) as file:
        file.write(content)


def read_state(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
            text = (file.metadata() or {})[_TEXT]
        state: dict[str, Any] = _put_together(json.loads(text), arrays)
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClearloopError(f"{path}: damaged, or no checkpoint: begin the run anew") from error
    return state


def _taken_apart(value: Any, place: str, arrays: Arrays) -> Any:
    match value:
        case np.ndarray() | np.generic():
            name = f"{len(arrays)}{place}"  # the number keeps {"a/b": …} and {"a": {"b": …}} apart
            arrays[name] = np.array(value, order="C")
            return {"array" if isinstance(value, np.ndarray) else "scalar": name}
        case None | bool() | int() | float() | str():
            return value
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise TypeError(f"a state's tables have text for keys, unlike {place or 'the outermost'}")
            table = {key: _taken_apart(item, f"{place}/{key}", arrays) for key, item in value.items()}
            return {"table": table}
        case list() | tuple():
            items = [_taken_apart(item, f"{place}/{i}", arrays) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(f"a state cannot hold the {type(value).__name__} at {place}")


def _put_together(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return [_put_together(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((what, content),) = value.items()
    match what:
        case "array":
            return arrays[content]
        case "scalar":
            return arrays[content][()]
        case "table":
            return {key: _put_together(item, arrays) for key, item in content.items()}
        case "tuple":
            return tuple(_put_together(item, arrays) for item in content)
    raise ValueError(what)
