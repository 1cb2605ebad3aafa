"""WhatsApp through Wassenger."""
