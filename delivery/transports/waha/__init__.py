"""WhatsApp through WAHA."""
