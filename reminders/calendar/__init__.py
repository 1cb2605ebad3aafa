"""The calendar of firings: the next firings, the days and weeks of a calendar, and the feed for other calendars."""
