"""Checks the rule of addresses, and finds erased people quickly. Both without a lock."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0031_erased_people")]

    operations = [
        ValidateConstraint(model_name="recipient", name="recipient_address_canonical"),
        AddIndexConcurrently(
            model_name="recipient",
            index=models.Index(
                condition=models.Q(erased_at__isnull=False), fields=["owner", "channel"], name="recipient_erased"
            ),
        ),
    ]
