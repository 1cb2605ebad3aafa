from functools import partial

from delivery import lifecycle
from delivery.management.run_command import RunCommand
from delivery.states import PauseReason


class Command(RunCommand):
    help = "Pause a run before its next message leaves."
    move = partial(lifecycle.pause, reason=PauseReason.OPERATOR)
