from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("activity", "0015_canceled_notifications")]

    operations = [ValidateConstraint(model_name="notification", name="notification_kind_known")]
