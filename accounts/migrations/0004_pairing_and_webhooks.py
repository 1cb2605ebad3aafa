import accounts.encryption
import accounts.models.account
import django.contrib.postgres.functions
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


def give_each_its_own(apps, schema_editor):
    """A default is asked for once, and so is the same in every row that was there."""
    for account in apps.get_model("accounts", "Account").objects.only("pk"):
        account.webhook = accounts.models.account.new_webhook()
        account.save(update_fields=["webhook"])


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_imports'),
    ]

    operations = [
        migrations.AddField(
            model_name='account',
            name='first_contacts_until',
            field=models.DateTimeField(blank=True, editable=False, help_text='Until when its service takes no message to somebody whom it never wrote to.', null=True),
        ),
        migrations.AddField(
            model_name='account',
            name='public_id',
            # Volatile: each row that is there gets a value of its own.
            field=models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, unique=True),
        ),
        migrations.AddField(
            model_name='account',
            name='reports_to',
            field=models.CharField(blank=True, editable=False, help_text='The PUBLIC_URL that its service was last told.', max_length=255),
        ),
        migrations.AddField(
            model_name='account',
            name='reports_tried_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='account',
            name='session_at',
            field=models.DateTimeField(blank=True, editable=False, help_text='When its session last changed, as its service says.', null=True),
        ),
        migrations.AddField(
            model_name='account',
            name='webhook',
            field=accounts.encryption.EncryptedJSONField(default=accounts.models.account.new_webhook, editable=False),
        ),
        migrations.AddField(
            model_name='recipient',
            name='left_at',
            field=models.DateTimeField(blank=True, editable=False, help_text='When its account was found to be in the group no more; that archives it.', null=True),
        ),
        migrations.RunPython(give_each_its_own, migrations.RunPython.noop, elidable=True),
        migrations.CreateModel(
            name='GroupSync',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('progress_at', models.DateTimeField(auto_now=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('seen', models.PositiveIntegerField(default=0)),
                ('added', models.PositiveIntegerField(default=0)),
                ('renamed', models.PositiveIntegerField(default=0)),
                ('left', models.PositiveIntegerField(default=0, help_text='Groups that the account is no longer in.')),
                ('error', models.CharField(blank=True, max_length=500)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='syncs', to='accounts.account')),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('finished_at__isnull', True)), fields=('account',), name='group_sync_one_at_a_time')],
            },
        ),
    ]
