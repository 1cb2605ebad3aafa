"""WhatsApp through Meta's Cloud API."""
