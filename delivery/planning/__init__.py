"""Plans and forecasts over days (docs/planning.md).

Pure: `values` (the input of a forecast and its result), `spacing` (when messages leave under the limits), `simulation`
(an account's work day by day), `diary` (how much planned work each day has room for), `upcoming` (runs that
scheduled reminders will make), `words` (a forecast in words).
With the database: `workload` (the accounts with their work), `forecasts` (forecasts of runs), `drip` (a time for every
target), `overbooked` (days over their cap), `replan` (moves work off full days).
"""
