"""The dashboard, notifications, the style page and error pages."""
