"""What the page may ask of a session: messages, checked."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError

from clearloop.errors import ClearloopError

Name = Annotated[str, Field(max_length=200)]
Share = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False, strict=True)]
Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Number = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False, strict=True)]
Side = Annotated[int, Field(ge=0, le=1, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**53, strict=True)]


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Steer(Message):
    do: Literal["hand"]
    action: Annotated[dict[Name, Share], Field(max_length=100)]


class Drive(Message):
    do: Literal["drive"]
    side: Side
    controller: Name | None
    """`hand`, what /api/controllers calls it, or null: nobody, which is for side 1"""


class Push(Message):
    do: Literal["push"]
    state: Name | None = None
    size: Share


class Aim(Message):
    do: Literal["setpoint"]
    state: Name
    value: Number


class Disturb(Message):
    do: Literal["sensors"]
    noise: Level = 0.0
    delay: Annotated[int, Field(ge=0, le=10, strict=True)] = 0


class Restart(Message):
    do: Literal["restart"]
    seed: Seed | None = None
    spread: Level | None = None
    """how much of the start box is used: 0 is its middle, 1 all of it; null: as it seems fit"""


class Pause(Message):
    do: Literal["pause"]
    on: StrictBool


class Slow(Message):
    do: Literal["speed"]
    factor: Annotated[float, Field(ge=0.1, le=1, allow_inf_nan=False, strict=True)]


class Record(Message):
    do: Literal["record"]
    on: StrictBool


Command = Steer | Drive | Push | Aim | Disturb | Restart | Pause | Slow | Record
_ANY: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="do")])


def parse_command(text: str | bytes) -> Command:
    try:
        return _ANY.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:100]
        what = " ".join(first["msg"].split())[:200]
        raise ClearloopError(f"message: {place}: {what}" if place else f"message: {what}") from error
