"""Two shorter indexes of the ledger in the place of two longer ones: the few rows of one moment are sorted by their id."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("activity", "0012_wordings")]

    operations = [
        AddIndexConcurrently("attempt", models.Index(fields=["owner", "-at"], name="attempt_of_owner")),
        AddIndexConcurrently("attempt", models.Index(fields=["-at"], name="attempt_by_time")),
        RemoveIndexConcurrently("attempt", name="attempt_by_owner"),
        RemoveIndexConcurrently("attempt", name="attempt_newest"),
    ]
