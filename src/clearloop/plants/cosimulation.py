"""Plants that run in a process of their own: FMUs, and packages that need an interpreter of their own.

An FMU is native code that may crash or never return. `PlantProcess` is the side of the program; the other
process runs `serving.serve`. The two exchange lines of JSON: a request, and its answer.
"""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, BinaryIO, NamedTuple, Self, cast

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.plants import serving
from clearloop.plants.serving import Refusal, serve
from clearloop.task import Task

LARGEST_FMU = 1024 * 1024 * 1024  # bytes of everything in it, unpacked
PATIENCE = 60.0  # seconds that one step may take
_SHOWN = 12  # names of variables in an error
_CHILD = "from clearloop.plants.cosimulation import serve_fmu; serve_fmu()"
INTERPRETER = "CLEARLOOP_INDUSTRIAL_PYTHON"  # the environment variable that names that of the benchmark


class PlantProcess:
    """A program of others that runs step by step in another process.

    Args:
        command: The program of the other process.
        wanted: The first request, which makes the plant. Its `outputs` are the names of what is read.
        name: What errors call this plant.
        kind: What errors call such plants.
        patience: Seconds that a step may take.

    Raises:
        ClearloopError: The other process refuses, or cannot be started.
    """

    def __init__(
        self, command: Sequence[str], wanted: Mapping[str, Any], *, name: str, kind: str, patience: float
    ) -> None:
        self._name, self._kind, self._patience = name, kind, patience
        self._outputs = tuple(wanted["outputs"])
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise ClearloopError(f"{name}: {command[0]} cannot be run: {error.strerror}") from error
        self._answers: Queue[bytes] = Queue()
        Thread(target=self._listen, daemon=True).start()
        try:
            self._ask(dict(wanted))
        except BaseException:
            self.close()
            raise

    def begin(self, starts: Mapping[str, float] | None = None) -> list[float]:
        """Begin a simulation at time 0, and return the outputs.

        Args:
            starts: The first values of variables, by name.

        Raises:
            ClearloopError: A variable cannot be set, or the plant fails.
        """
        return self._numbers(self._ask({"begin": dict(starts or {})}))

    def advance(self, inputs: Sequence[float]) -> list[float]:
        """Simulate one step with these inputs, and return the outputs after it.

        Raises:
            ClearloopError: The plant fails, crashes, takes too long, or returns what is no number.
        """
        return self._numbers(self._ask({"inputs": [float(value) for value in inputs]}))

    def close(self) -> None:
        """End the other process."""
        with suppress(OSError):
            cast(BinaryIO, self._process.stdin).close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with suppress(OSError):
            cast(BinaryIO, self._process.stdout).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self) -> None:
        with suppress(OSError, ValueError):  # the pipe was closed
            for line in cast(BinaryIO, self._process.stdout):
                self._answers.put(line)
        self._answers.put(b"")

    def _ask(self, request: dict[str, Any]) -> Any:
        try:
            pipe = cast(BinaryIO, self._process.stdin)
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()
            line = self._answers.get(timeout=self._patience)
        except OSError as error:
            raise ClearloopError(f"{self._name}: {self._death()}") from error
        except Empty as error:
            self._process.kill()
            raise ClearloopError(
                f"{self._name}: the {self._kind} did not answer within {self._patience:g} s, and was stopped"
            ) from error
        if not line:
            raise ClearloopError(f"{self._name}: {self._death()}")
        answer = json.loads(line)
        if "error" in answer:
            raise ClearloopError(f"{self._name}: {answer['error']}")
        return answer["answer"]

    def _death(self) -> str:
        """Say how the other process ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.returncode
        if code is not None and code < 0:
            with suppress(ValueError):
                name = signal.Signals(-code).name
                return f"the {self._kind} crashed ({name}): look for the fault in the {self._kind}"
        how = f"the {self._kind} ended its process (exit code {code})"
        return f"{how}: look for the fault in the {self._kind}"

    def _numbers(self, values: Sequence[float | None]) -> list[float]:
        found = [math.nan if value is None else value for value in values]
        for name, value in zip(self._outputs, found, strict=True):
            if not math.isfinite(value):
                raise ClearloopError(f"{self._name}: its variable {quoted(name)} became {value}")
        return found


class CoSimulation(PlantProcess):
    """An FMU that runs step by step in another process.

    Args:
        file: The FMU, for co-simulation after FMI 2.0 or 3.0.
        inputs: The names of the variables that are set before every step.
        outputs: The names of the variables that are read after every step.
        step: Seconds of a step.
        patience: Seconds that a step may take.

    Raises:
        ClearloopError: There is no such file, it is no such FMU, it has no binary for this machine, or it
            lacks a variable.
    """

    def __init__(
        self,
        file: str | Path,
        *,
        inputs: Sequence[str],
        outputs: Sequence[str],
        step: float,
        patience: float = PATIENCE,
    ) -> None:
        self.file = Path(file)
        if not self.file.is_file():
            raise ClearloopError(f"{self.file}: no such FMU")
        wanted = {
            "file": str(self.file.absolute()),
            "inputs": [*inputs],
            "outputs": [*outputs],
            "step": step,
        }
        command = [sys.executable, "-P", "-c", _CHILD]
        super().__init__(command, wanted, name=str(file), kind="FMU", patience=patience)


class IndustrialBenchmark(PlantProcess):
    """The Industrial Benchmark of industrial_benchmark_python, run by the interpreter that has it.

    `begin` takes the setpoint `p` and a `seed`.

    Args:
        inputs: The names of its three actions, in the order in which steps give them.
        outputs: The names of the states that are read after every step.

    Raises:
        ClearloopError: The interpreter does not have the package, or it has no such state or action.
    """

    def __init__(
        self,
        inputs: Sequence[str] = serving.IndustrialBenchmark.ACTIONS,
        outputs: Sequence[str] = serving.IndustrialBenchmark.STATES,
    ) -> None:
        self.interpreter = os.environ.get(INTERPRETER) or sys.executable
        # Isolated: the folder of the script, where modules are called `plant` and `gym`, is not searched.
        super().__init__(
            [self.interpreter, "-I", serving.__file__],
            {"inputs": [*inputs], "outputs": [*outputs]},
            name="industrial-benchmark",
            kind="package",
            patience=PATIENCE,
        )


class _Space(NamedTuple):
    dtype: type = float


class ProcessEnvironment:
    """A plant in a process of its own, with the interface of a Gymnasium environment.

    An observation has the states in their order; NaN stands for those that the task computes.

    Args:
        task: A task whose plant is an FMU or a package.

    Raises:
        ClearloopError: The plant cannot be run, or it lacks a variable for a state or an action.
    """

    action_space = _Space()

    def __init__(self, task: Task) -> None:
        self._plant = task.plant
        names = task.plant.variables if task.plant else {}
        self._states = [name for name in task.state_names if name not in task.derived]
        self._places = [task.state_names.index(name) for name in self._states]
        self._width, self._limits = len(task.states), task.action_limits.tolist()
        self._starts = {name: names.get(f"{name}.start", names.get(name, name)) for name in self._states}
        inputs, outputs = ([names.get(it, it) for it in some] for some in (task.action_names, self._states))
        self._unit: PlantProcess
        try:
            if task.fmu is None:
                self._unit = IndustrialBenchmark(inputs, outputs)
            else:
                self._unit = CoSimulation(task.fmu, inputs=inputs, outputs=outputs, step=task.dt)
        except ClearloopError as error:
            key = "package" if task.fmu is None else "fmu"
            raise ClearloopError(f"task '{task.name}': [plant] {key}: {error}") from error

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, float] | None = None
    ) -> tuple[list[float], dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: The seed of a package; an FMU draws nothing.
            options: The first values of states by name; what is not named begins as the FMU has it, or with
                the first of the package's settings.
        """
        given = options or {}
        if self._plant is not None and self._plant.package is not None:
            usual = {name: values[0] for name, values in self._plant.settings.items()}
            return self._observation(self._unit.begin({**usual, **given, "seed": seed or 0})), {}
        starts = {place: given[name] for name, place in self._starts.items() if name in given}
        return self._observation(self._unit.begin(starts)), {}

    def step(self, action: Sequence[float]) -> tuple[list[float], float, bool, bool, dict[str, Any]]:
        """Run one control interval with the actions, which are limited as the task says."""
        limited = [min(max(float(u), low), high) for u, (low, high) in zip(action, self._limits, strict=True)]
        return self._observation(self._unit.advance(limited)), math.nan, False, False, {}

    def close(self) -> None:
        """End the other process."""
        self._unit.close()

    def _observation(self, values: Sequence[float]) -> list[float]:
        found = [math.nan] * self._width
        for place, value in zip(self._places, values, strict=True):
            found[place] = value
        return found


# The other process of an FMU.


def serve_fmu() -> None:
    """Answer requests for an FMU on standard input until it ends."""
    with TemporaryDirectory() as folder:
        serve(lambda wanted: _Unit(wanted, Path(folder)), "FMU")


class _Unit:
    """The FMU in the other process."""

    def __init__(self, wanted: dict[str, Any], folder: Path) -> None:
        try:
            from fmpy import extract, platform, platform_tuple, read_model_description
        except ImportError as error:
            raise Refusal("running an FMU needs fmpy: pip install 'clearloop[fmu]'") from error
        self._check_size(wanted["file"])
        self._about = about = read_model_description(wanted["file"], validate=False)
        version = str(about.fmiVersion)
        if not version.startswith(("2", "3")):
            raise Refusal(f"FMI {version} is not supported: export the FMU for FMI 2.0 or 3.0")
        if about.coSimulation is None:
            raise Refusal("it is for model exchange only: export the FMU for co-simulation")
        self._old, self._step = version.startswith("2"), float(wanted["step"])
        self._inputs = [self._find(name) for name in wanted["inputs"]]
        self._outputs = [self._find(name) for name in wanted["outputs"]]
        for one in self._inputs:
            if one.causality not in ("input", "parameter") or one.variability in ("constant", "fixed"):
                raise Refusal(
                    f"its variable {quoted(one.name)} is no input: it is of causality {one.causality}"
                )
        self._folder = Path(extract(wanted["file"], unzipdir=str(folder)))
        place = platform if self._old else platform_tuple
        names = sorted(one.name for one in (self._folder / "binaries").glob("*"))
        if place not in names:
            had = f"only for {', '.join(names)}" if names else "only sources"
            raise Refusal(f"it has no binary for this machine ({place}), {had}: export it for {place}")
        self._unit: Any = None
        self._steps = 0

    @staticmethod
    def _check_size(file: str) -> None:
        from zipfile import BadZipFile, ZipFile

        try:
            with ZipFile(file) as packed:
                size = sum(one.file_size for one in packed.infolist())
        except (BadZipFile, OSError) as error:
            raise Refusal(f"it is not an FMU: {error}") from error
        if size > LARGEST_FMU:
            raise Refusal(f"it has {size:,} bytes unpacked; at most {LARGEST_FMU:,} are read")

    def _find(self, name: str) -> Any:
        known = {one.name: one for one in self._about.modelVariables}
        if name not in known:
            shown = ", ".join([*known][:_SHOWN]) + (" …" if len(known) > _SHOWN else "")
            raise Refusal(f"it has no variable {quoted(name)}{did_you_mean(name, known)}; it has: {shown}")
        found = known[name]
        if found.type in ("String", "Binary", "Clock") or found.dimensions:
            raise Refusal(f"its variable {quoted(name)} is not one number")
        return found

    def begin(self, starts: Mapping[str, float]) -> list[float | None]:
        first = {name: self._find(name) for name in starts}
        for name, one in first.items():
            if one.causality not in ("input", "parameter") and one.initial not in ("exact", "approx"):
                raise Refusal(
                    f"its variable {quoted(name)} has no start that can be set: name the parameter that sets "
                    'it in [plant] variables, as in "level.start" = "level0", or leave it out of the starts'
                )
        self._unit = self._fresh()
        for name, value in starts.items():
            self._set(first[name], value)
        if self._old:
            self._unit.setupExperiment(startTime=0.0)
        self._unit.enterInitializationMode()
        self._unit.exitInitializationMode()
        self._steps = 0
        return self._read()

    def _fresh(self) -> Any:
        """Return the instance, set back; or a new one, if there is none or if it cannot be set back."""
        if self._unit is not None:
            try:
                self._unit.reset()
            except Exception:  # noqa: S110 - some FMUs do not have it
                pass
            else:
                return self._unit
        from fmpy.fmi2 import FMU2Slave
        from fmpy.fmi3 import FMU3Slave

        unit = (FMU2Slave if self._old else FMU3Slave)(
            guid=self._about.guid if self._old else self._about.instantiationToken,
            unzipDirectory=str(self._folder),
            modelIdentifier=self._about.coSimulation.modelIdentifier,
            instanceName="clearloop",
        )
        unit.instantiate()
        return unit

    def advance(self, inputs: Sequence[float]) -> list[float | None]:
        for one, value in zip(self._inputs, inputs, strict=True):
            self._set(one, value)
        now = self._steps * self._step
        self._unit.doStep(currentCommunicationPoint=now, communicationStepSize=self._step)
        self._steps += 1
        return self._read()

    def _set(self, one: Any, value: float) -> None:
        kind = self._kind(one)
        number = value if kind in ("Real", "Float64", "Float32") else round(value)
        getattr(self._unit, f"set{kind}")([one.valueReference], [number])

    def _read(self) -> list[float | None]:
        return [value if math.isfinite(value) else None for value in self._values()]

    def _values(self) -> Iterator[float]:
        for one in self._outputs:
            yield float(getattr(self._unit, f"get{self._kind(one)}")([one.valueReference])[0])

    def _kind(self, one: Any) -> str:
        """Return the type by which a variable is set and read, such as Real or Int64."""
        if one.type == "Enumeration":
            return "Integer" if self._old else "Int64"
        return str(one.type)
