from delivery.management.run_command import RunCommand
from delivery.run_actions import ACTIONS


class Command(RunCommand):
    help = "Resume a paused run: only its pending messages are sent."
    action = ACTIONS["resume"]
