"""Check the rules of working hours on the rows that were there before, without a lock that keeps others out."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0027_working_hours")]

    operations = [
        ValidateConstraint(model_name="account", name="account_working_hours_whole"),
        ValidateConstraint(model_name="account", name="account_working_days"),
    ]
