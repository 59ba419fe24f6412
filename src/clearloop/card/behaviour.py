"""What a controller does away from its rest: starts saved and lost, disturbances, costs, where it goes."""

from clearloop.card.phrases import MINUS, number, quantity
from clearloop.card.pictures import as_svg
from clearloop.card.sections import Section, table
from clearloop.card.subject import Subject
from clearloop.evaluation import Evaluation
from clearloop.report.sentences import percent, with_error
from clearloop.report.start_map import Outcomes, draw_start_maps

FIGURES = ("1fr", "auto", "auto", "auto")  # a name, and three columns of numbers


def _where(subject: Subject) -> str:
    return "on the plant" if subject.diagnosis.on == "system" else "on the model"


def _aims(subject: Subject) -> str:
    """The setpoints, where the log has many of them."""
    aims = subject.diagnosis.controller.setpoint
    said = [
        f"{name} {quantity(aims[name], subject.task.states[name].unit)}"
        for name in subject.controller.follows
        if name in aims
    ]
    return f", with the usual setpoint of the log: {', '.join(said)}" if said else ""


def starts(subject: Subject) -> Section:
    title, found = "Starts saved and lost", subject.diagnosis.starts
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['starts']}.",))
    outcomes = {f"{len(found.failed):,} starts {_where(subject)}": Outcomes(found.penalties, found.failed)}
    figure = draw_start_maps(subject.task, found.starts, outcomes)
    lost = f"crosses mark the {found.failed.sum():,} that fail" if found.failed.any() else "none fails"
    caption = f"Penalty by start, {_where(subject)}{_aims(subject)}; {lost}."
    return Section(title, figure=as_svg(figure), caption=caption)


def robustness(subject: Subject) -> Section:
    title, found = "Noise, delay and gain error", subject.diagnosis.robustness
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['robustness']}.",))
    rows = [["undisturbed", f"{found.penalty:.3f}", "", percent(found.failures)]]
    rows += [
        [
            one.name.replace("-", MINUS),
            f"{one.penalty:.3f}",
            f"{round(one.change, 3) + 0.0:+.3f} ± {one.standard_error:.3f}".replace("-", MINUS),
            percent(one.failures),
        ]
        for one in found.disturbed
    ]
    steps = []
    for step in subject.diagnosis.steps:
        time = step.settling_time
        settled = "does not settle" if time is None else f"settles in {time:.3g} s"
        size = f"{step.size:g} {step.unit}".rstrip()
        steps.append(
            f"A step of {step.state} by {size}: {settled}, overshoot {step.overshoot:.3g} %,"
            f" undershoot {step.undershoot:.3g} %."
        )
    return Section(
        title,
        table=table(
            ["", "penalty", "change", "failures"],
            rows,
            numbers=[1, 2, 3],
            widths=FIGURES,
        ),
        notes=(
            f"From {found.starts} starts {_where(subject)}{_aims(subject)}.",
            "Noise: of each state's spread in the log.",
            *steps,
        ),
    )


def costs(subject: Subject) -> Section:
    rows = [_cost("promised by the model", subject.promised)]
    if subject.tested is None:
        rows.append(["tested", "not tested on a plant", "", ""])
    else:
        rows.append(_cost("tested on the plant", subject.tested))
    return Section(
        "What it costs",
        table=table(
            ["", "penalty", "failures", "starts"],
            rows,
            numbers=[1, 2, 3],
            widths=FIGURES,
        ),
        notes=(_compared(subject),),
    )


def _cost(name: str, found: Evaluation) -> list[str]:
    return [
        name,
        with_error(found.penalty, found.standard_error),
        percent(found.failures),
        f"{found.penalties.shape[1]:,}",
    ]


def _compared(subject: Subject) -> str:
    spread = subject.promised.penalties.mean(axis=1)
    judges = f"The promise is the mean of {len(spread)} models that judge, which the search did not use"
    if len(spread) > 1:
        judges += f"; they say {number(float(spread.min()))} to {number(float(spread.max()))}"
    if subject.tested is None or subject.promised.penalty <= 0:
        return f"{judges}."
    more = 100 * (subject.tested.penalty / subject.promised.penalty - 1)
    return f"{judges}. The plant costs {abs(more):.1f} % {'more' if more >= 0 else 'less'} than promised."


def coverage(subject: Subject) -> Section:
    title, found = "Where it goes", subject.diagnosis.coverage
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['coverage']}.",))
    beyond = [
        f"{name} below {percent(float(low))}, above {percent(float(high))}"
        for name, (low, high) in zip(subject.task.state_names, found.beyond, strict=True)
        if max(low, high) >= 5e-4
    ]
    return Section(
        title,
        lines=(
            f"{percent(found.outside)} of its path on the model is outside the logged data;"
            f" {percent(found.courses)} of its courses leave it at some time. Of the log itself, 1 %.",
        ),
        notes=(f"Outside the logged range of one state alone: {'; '.join(beyond)}.",) if beyond else (),
    )
