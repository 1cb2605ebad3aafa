"""WhatsApp through Evolution API."""
