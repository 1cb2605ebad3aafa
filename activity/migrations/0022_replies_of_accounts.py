"""An index for the replies of an account: receipts, which are many more, are not in it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("activity", "0021_notificationoutbox")]

    operations = [
        AddIndexConcurrently(
            "inbound",
            models.Index(
                condition=models.Q(("kind", "message")), fields=["account", "id"], name="inbound_messages"
            ),
        ),
    ]
