"""The tables of queues: a queue with its senders, and its items."""

from queues.models.item import Item
from queues.models.queue import Queue, QueueAccount
from queues.models.source import Source, SourceRead, SourceRow

__all__ = ["Item", "Queue", "QueueAccount", "Source", "SourceRead", "SourceRow"]
