"""The tables of queues: a queue with its senders, its items, and imports of them."""

from queues.models.importing import QueueImport
from queues.models.item import Item
from queues.models.queue import Queue, QueueAccount
from queues.models.source import Source, SourceRead, SourceRow

__all__ = ["Item", "Queue", "QueueAccount", "QueueImport", "Source", "SourceRead", "SourceRow"]
