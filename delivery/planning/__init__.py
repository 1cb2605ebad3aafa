"""Plans and forecasts over days (docs/planning.md).

Pure: `course` (what a forecast is made from, and what it says), `rhythm` (when messages fall), `lane` (an account on
its way through the days), `diary` (where planned work finds its place),
`upcoming` (runs that scheduled reminders will make), `outlook` (a forecast in words).
With the database: `usage` (what the ledger says), `standing` (how accounts stand), `foresight` (forecasts of runs),
`drip` (a time for every target), `overbooked` (days over their cap), `replan` (moves work off full days).
"""
