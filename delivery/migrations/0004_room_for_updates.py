"""A target is written three times on its way out; the second time fits on its page, if there is room."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0003_legal_moves")]

    operations = [
        migrations.RunSQL(
            sql="ALTER TABLE delivery_runtarget SET (fillfactor = 75)",
            reverse_sql="ALTER TABLE delivery_runtarget RESET (fillfactor)",
        ),
    ]
