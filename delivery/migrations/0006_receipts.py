from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False  # the table is long, and runs go on while the index is built

    dependencies = [
        ('delivery', '0005_runs_behind_others'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='runtarget',
            index=models.Index(condition=models.Q(('provider_id', ''), _negated=True), fields=['account', 'provider_id'], name='target_by_provider_id'),
        ),
    ]
