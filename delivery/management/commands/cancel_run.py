from delivery import lifecycle
from delivery.management.run_command import RunCommand


class Command(RunCommand):
    help = "Cancel a run: what is left of it is skipped."
    move = staticmethod(lifecycle.cancel)
