from delivery.management.run_command import RunCommand
from delivery.run_actions import ACTIONS


class Command(RunCommand):
    help = "Queue the failed messages of an ended run again, in the same run."
    action = ACTIONS["retry"]
