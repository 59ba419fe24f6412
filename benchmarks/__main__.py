"""`make bench`: the engine beside its peers and the machine's limit, on one job, in one run."""

import subprocess
import sys
import time

from benchmarks.demo import run_demo
from benchmarks.exports import equation, nanoseconds
from benchmarks.job import (
    MULTIPLY_ADDS,
    engine_job,
    engine_system,
    linear_policies,
    make_workload,
    program_policies,
)
from benchmarks.measure import Timing, Work, measure, on_all_cores
from benchmarks.peak import multiply_adds, peak_runner
from benchmarks.peers import jax_runner, numpy_runner, torch_runner
from benchmarks.planning import decision, default_pilot
from clearloop.kernels.engine import roll_out, threads

PEAK_REPEATS = 20_000_000
REPETITIONS = 5


def main() -> None:
    cores = threads()
    workload = make_workload()
    system, job, linear = engine_system(workload), engine_job(workload), linear_policies(workload)
    programs = program_policies(len(workload.gains))
    works: dict[str, Work] = {
        "peak": on_all_cores(peak_runner(PEAK_REPEATS), cores),
        "engine": lambda: roll_out(linear, system, job),
        "engine, one core": lambda: roll_out(linear, system, job, workers=1),
        "programs": lambda: roll_out(programs, system, job),
        "NumPy": numpy_runner(workload),
        "jax.jit": jax_runner(workload),
    }
    try:
        works["PyTorch"] = torch_runner(workload)
    except ImportError:
        print("PyTorch is not installed and skipped: pip install 'clearloop[bench]'\n")
    times = measure(works, REPETITIONS)
    print(
        f"{len(workload.gains):,} linear policies x {len(workload.starts)} starts x {workload.horizon} steps",
        end="",
    )
    print(f" through the paper's networks, {cores} cores, best of {REPETITIONS}\n")
    print_peers(times, workload.steps, cores)
    print_growth()
    print_planning()
    print_export()
    print_start()
    print_demo(cores)
    noise = max(timing.noise for timing in times.values())
    print(f"\nThe typical repetition was up to {noise:.0%} slower than the best: {_verdict(noise)}.")


def print_peers(times: dict[str, Timing], steps: int, cores: int) -> None:
    rate = {name: steps / timing.best / 1e6 for name, timing in times.items() if name != "peak"}
    peak = cores * multiply_adds(PEAK_REPEATS) / times["peak"].best
    engine = steps * MULTIPLY_ADDS / times["engine"].best
    print("                     million steps/s   engine is         bar")
    for name in ("engine", "engine, one core"):
        print(f"{name:20s} {rate[name]:15.1f}")
    for name, bar in (("NumPy", 18), ("jax.jit", 6), ("PyTorch", 25)):
        if name in rate:
            print(f"{name:20s} {rate[name]:15.2f}   {rate['engine'] / rate[name]:5.1f} times     {bar} times")
    print(
        f"{'multiply-add peak':20s} {peak / MULTIPLY_ADDS / 1e6:15.1f}   {engine / peak:5.0%} of it     55 %"
    )
    print(f"  (peak {2 * peak / 1e9:.0f} GFLOP/s on {cores} cores, {MULTIPLY_ADDS:,} multiply-adds a step)")
    ratio = times["programs"].best / times["engine"].best
    print(f"{'random GP programs':20s} {rate['programs']:15.1f}   {ratio:5.2f} the time  1.5\n")


def print_growth() -> None:
    """Doubling any side of the job doubles the time."""
    base = {"policies": 1000, "starts": 100, "horizon": 100, "members": 1}
    works: dict[str, Work] = {}
    for name, sizes in {"": base, **{side: {**base, side: 2 * size} for side, size in base.items()}}.items():
        workload = make_workload(**sizes)
        parts = linear_policies(workload), engine_system(workload), engine_job(workload)
        works[name] = lambda parts=parts: roll_out(*parts)  # type: ignore[misc]
    times = measure(works, 3 * REPETITIONS)
    growth = ", ".join(f"{name} {times[name].best / times[''].best:.2f}" for name in base)
    print(f"Time after doubling, 2 +- 15 %: {growth}")


def print_planning() -> None:
    """A planner must decide before the next step is due."""
    pilot = default_pilot()
    timing = measure({"decision": decision(pilot)}, 20 * REPETITIONS)["decision"]
    planner = pilot.planner
    swarm = f"{planner.particles} particles x {planner.rounds} rounds x {planner.horizon} steps"
    models = "1 model" if planner.members == 1 else f"{planner.members} models"
    print(
        f"A plan ({swarm}, {models}) on one core: {1e3 * timing.best:.1f} ms, typically "
        f"{1e3 * timing.median:.1f} (bar {1e3 * pilot.task.dt:.0f} ms)"
    )


def print_export() -> None:
    """A controller on the target costs next to nothing."""
    time_of_a_call = nanoseconds()
    if time_of_a_call is None:
        print("No C compiler is installed: exported C was not timed.")
        return
    complexity = equation().complexity
    print(f"Exported C, an equation of complexity {complexity}: {time_of_a_call:.1f} ns a call (bar 100 ns)")


def print_start() -> None:
    """What a user waits for before anything happens."""
    for words, bar in ((["-c", "import clearloop"], 0.3), (["-m", "clearloop", "--help"], 0.5)):
        bare = _seconds(["-c", "pass"])
        print(f"python {' '.join(words)}: {_seconds(words):.2f} s (bar {bar} s; python alone {bare:.2f} s)")


def print_demo(cores: int) -> None:
    """What the demo takes after installation, and how much of the machine its whole search uses."""
    demo = run_demo()
    peak = measure({"peak": on_all_cores(peak_runner(PEAK_REPEATS), cores)}, REPETITIONS)["peak"]
    share = demo.rate * peak.best / (cores * multiply_adds(PEAK_REPEATS))
    print(
        f"A whole search, budget quick: {demo.steps / demo.phases['search'] / 1e6:.1f} million steps/s, "
        f"{share:.0%} of the multiply-add peak (bar 50 %)"
    )
    phases = ", ".join(f"{name} {seconds:.0f}" for name, seconds in demo.phases.items())
    print(f"The demo, in seconds: {phases}; {sum(demo.phases.values()):.0f} in all")


def _seconds(words: list[str]) -> float:
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)  # noqa: S603 - our own words
        best = min(best, time.perf_counter() - begin)
    return best


def _verdict(noise: float) -> str:
    return "a quiet machine" if noise < 0.1 else "a busy machine, on which these figures are too low"


if __name__ == "__main__":
    main()
