"""A controller as an FMU, stepped by a simulator as Simulink, Modelica tools or FMPy do it."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fmpy import simulate_fmu
from matplotlib.figure import Figure

import clearloop as cl


def main(figure: str = "fmu.png") -> None:
    task = cl.Task.load("cartpole")
    controller = cl.load("examples/published/gprl.json").for_task(task)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "gprl.fmu"
        content = cl.export(controller, to="fmu", name="gprl")["gprl.fmu"]
        if isinstance(content, bytes):
            file.write_bytes(content)
        course = simulate_fmu(str(file), start_values={"theta": 0.1}, stop_time=1.0, output_interval=task.dt)
    memory = controller.reset()
    expected = controller.act({"theta": 0.1, "theta_dot": 0.0, "rho": 0.0, "rho_dot": 0.0}, memory)
    print(f"the FMU sets {course['force'][-1]:.6f} N, the controller {expected['force']:.6f} N")

    drawing = Figure(figsize=(6.4, 2.4), layout="constrained")
    axes = drawing.subplots()
    axes.step(course["time"], course["force"], where="post")
    axes.set(xlabel="time (s)", ylabel="force (N)", title="The FMU while theta is held at 0.1 rad")
    drawing.savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
