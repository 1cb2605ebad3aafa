"""The parts that all WhatsApp transports share: addresses and the content of messages."""
