"""An index for the runs that go on without some of their accounts, which the tick asks for every few seconds."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("delivery", "0030_shares_that_wait")]

    operations = [
        AddIndexConcurrently(
            model_name="runaccount",
            index=models.Index(
                condition=models.Q(("open", True), ("waits", True)),
                fields=["run"],
                name="run_account_waits",
            ),
        ),
    ]
