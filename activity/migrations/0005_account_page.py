from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False  # rows are written while the index is built

    dependencies = [
        ('accounts', '0004_pairing_and_webhooks'),
        ('activity', '0004_notification_run'),
        ('delivery', '0007_drip_plans'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='attempt',
            index=models.Index(condition=models.Q(('outcome', 'sent'), _negated=True), fields=['account', '-at'], name='attempt_trouble'),
        ),
    ]
