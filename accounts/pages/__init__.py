"""The pages of recipients, tags and imports."""
