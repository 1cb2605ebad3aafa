from delivery import lifecycle
from delivery.management.run_command import RunCommand


class Command(RunCommand):
    help = "Resume a paused run: only its pending targets are sent."
    move = staticmethod(lifecycle.resume)
