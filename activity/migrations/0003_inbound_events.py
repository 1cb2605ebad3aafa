import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('activity', '0002_ledger'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='inbound',
            name='inbound_kind_known',
        ),
        migrations.AddField(
            model_name='inbound',
            name='chat',
            field=models.CharField(blank=True, max_length=255),
        ),
        migrations.AddField(
            model_name='inbound',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, default=django.utils.timezone.now),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='inbound',
            name='provider_id',
            field=models.CharField(blank=True, help_text='Of the message that it is about.', max_length=255),
        ),
        migrations.AddField(
            model_name='inbound',
            name='sender',
            field=models.CharField(blank=True, help_text='As the service writes it.', max_length=255),
        ),
        migrations.AddField(
            model_name='inbound',
            name='state',
            field=models.CharField(blank=True, help_text='Of a receipt or a session.', max_length=20),
        ),
        migrations.AddField(
            model_name='inbound',
            name='until',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='inbound',
            name='kind',
            field=models.CharField(choices=[('message', 'Message'), ('receipt', 'Receipt'), ('session', 'Session change'), ('lock', 'First contacts locked')], max_length=10),
        ),
        migrations.AlterField(
            model_name='inbound',
            name='text',
            field=models.TextField(blank=True, help_text="What was written, or the service's reason."),
        ),
        migrations.AddIndex(
            model_name='inbound',
            index=models.Index(condition=models.Q(('handled_at__isnull', True)), fields=['account', 'id'], name='inbound_unhandled'),
        ),
        migrations.AddConstraint(
            model_name='inbound',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['message', 'receipt', 'session', 'lock'])), name='inbound_kind_known'),
        ),
    ]
