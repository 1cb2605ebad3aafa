from delivery.management.run_command import RunCommand
from delivery.run_actions import ACTIONS


class Command(RunCommand):
    help = "Cancel a run: its pending messages are skipped."
    action = ACTIONS["cancel"]
