import django.contrib.postgres.fields
import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False  # the table is long, and runs go on while the index is built

    dependencies = [
        ('delivery', '0011_runs_by_kind'),
    ]

    operations = [
        migrations.AddField(
            model_name='runtarget',
            name='earlier_ids',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), blank=True, help_text='Of the parts before that one.', null=True, size=None),
        ),
        migrations.AlterField(
            model_name='runtarget',
            name='provider_id',
            field=models.CharField(blank=True, db_default='', default='', help_text='Of its last part that was taken.', max_length=255),
        ),
        AddIndexConcurrently(
            model_name='runtarget',
            index=django.contrib.postgres.indexes.GinIndex(condition=models.Q(('earlier_ids__isnull', False)), fields=['earlier_ids'], name='target_by_earlier_id'),
        ),
    ]
