"""A run may pause for its account's health."""

import delivery.states
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', "0024_late_failures_checked"),
        ('reminders', '0005_beside_paused_runs'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='run',
            name='run_paused_for_a_reason',
        ),
        # The release before knows no such reason.
        migrations.RunSQL(
            migrations.RunSQL.noop,
            "UPDATE delivery_run SET pause_reason = 'operator' WHERE pause_reason = 'account_health'",
        ),
        migrations.AlterField(
            model_name='run',
            name='pause_reason',
            field=models.CharField(blank=True, choices=[('window_closed', 'Window closed'), ('daily_cap', 'Daily cap'), ('error_rate', 'Error rate'), ('operator', 'Operator'), ('account_offline', 'Account offline'), ('account_flagged', 'Account flagged'), ('account_health', 'Account health')], max_length=20),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pause_reason__in', ['window_closed', 'daily_cap', 'error_rate', 'operator', 'account_offline', 'account_flagged', 'account_health']), ('status', delivery.states.RunStatus['PAUSED'])), models.Q(models.Q(('status', delivery.states.RunStatus['PAUSED']), _negated=True), ('pause_reason', '')), _connector='OR'), name='run_paused_for_a_reason'),
        ),
    ]
