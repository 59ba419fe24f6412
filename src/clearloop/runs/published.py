"""What others have published for a plant, on the scoring set, like a front."""

from collections.abc import Iterator

from clearloop.evaluation import Evaluation, evaluate
from clearloop.published import Published, published_for
from clearloop.surrogate import Surrogate
from clearloop.task import Task


def score_published(task: Task, surrogate: Surrogate) -> Iterator[tuple[Published, Evaluation, Evaluation]]:
    """Each controller, by the judging members and by the plant."""
    for known in published_for(task):
        controller = known.load()
        model = evaluate(controller, task, surrogate=surrogate, members=surrogate.judge_members)
        yield known, model, evaluate(controller, task)
