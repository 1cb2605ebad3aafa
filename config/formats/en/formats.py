"""Django's formats for times where no template sets one, as in the admin: with their zone, like everywhere else."""

DATE_FORMAT = "j M Y"
DATETIME_FORMAT = "j M Y, H:i:s T"
