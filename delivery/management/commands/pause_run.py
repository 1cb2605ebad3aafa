from delivery.management.run_command import RunCommand
from delivery.run_actions import ACTIONS


class Command(RunCommand):
    help = "Pause a run before its next message is sent."
    action = ACTIONS["pause"]
