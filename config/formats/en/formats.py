"""How Django writes times where no template says it, as in the admin: with their zone, like everywhere else."""

DATE_FORMAT = "j M Y"
DATETIME_FORMAT = "j M Y, H:i:s T"
