from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reminders", "0007_carriers_of_messages")]

    operations = [
        migrations.AddField(
            model_name="reminder",
            name="carries_queue",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="It carries the runs of a queue and is never fired itself.",
            ),
        ),
    ]
