from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("activity", "0019_more_kinds")]

    operations = [ValidateConstraint(model_name="notification", name="notification_kind_known")]
