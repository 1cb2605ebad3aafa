from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False  # rows are written while the index is built

    dependencies = [
        ('accounts', '0004_pairing_and_webhooks'),
        ('delivery', '0007_drip_plans'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='runaccount',
            index=models.Index(fields=['account', '-run'], name='run_account_newest'),
        ),
    ]
