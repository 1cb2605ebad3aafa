"""The health of accounts, and its history (SPEC L3)."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', "0020_undeliverable_index"),
    ]

    operations = [
        migrations.CreateModel(
            name='HealthChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('move', models.CharField(choices=[('slowed', 'Slowed down'), ('paused', 'Paused'), ('lifted', 'Lifted'), ('recovered', 'Recovered')], max_length=10)),
                ('at', models.DateTimeField()),
                ('why', models.CharField(max_length=500)),
            ],
            options={
                'ordering': ['-at', '-id'],
            },
        ),
        migrations.AddField(
            model_name='account',
            name='health',
            field=models.CharField(blank=True, choices=[('', 'Good'), ('slow', 'Slowed down'), ('paused', 'Paused')], db_default='', default='', editable=False, max_length=10),
        ),
        migrations.AddField(
            model_name='account',
            name='health_base',
            field=models.JSONField(blank=True, editable=False, help_text='The counts of that day before it started afresh.', null=True),
        ),
        migrations.AddField(
            model_name='account',
            name='health_from',
            field=models.DateField(blank=True, editable=False, help_text='Earlier days count no more: it started afresh.', null=True),
        ),
        migrations.AddField(
            model_name='account',
            name='health_reason',
            field=models.TextField(blank=True, db_default='', default='', editable=False, help_text='The figure for which it is slowed down or paused, and a remedy.'),
        ),
        migrations.AddField(
            model_name='account',
            name='health_until',
            field=models.DateTimeField(blank=True, editable=False, help_text='When it continues by itself.', null=True),
        ),
        migrations.AddConstraint(
            model_name='account',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('health__in', ['', 'slow']), ('health_until__isnull', True)), models.Q(('health', 'paused'), ('health_until__isnull', False)), _connector='OR'), name='account_health_known'),
        ),
        migrations.AddField(
            model_name='healthchange',
            name='account',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='health_changes', to='accounts.account'),
        ),
        migrations.AddField(
            model_name='healthchange',
            name='by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='healthchange',
            index=models.Index(fields=['account', '-at'], name='health_change_newest'),
        ),
        migrations.AddConstraint(
            model_name='healthchange',
            constraint=models.CheckConstraint(condition=models.Q(('move__in', ['slowed', 'paused', 'lifted', 'recovered'])), name='health_move_known'),
        ),
    ]
