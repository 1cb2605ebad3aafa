from delivery import lifecycle
from delivery.management.run_command import RunCommand


class Command(RunCommand):
    help = "Queue the failed targets of a settled run again, in the same run."
    move = staticmethod(lifecycle.retry_failed)
