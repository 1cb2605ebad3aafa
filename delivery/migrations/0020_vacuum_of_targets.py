"""A target is written three times: vacuum comes after a fiftieth of the table, not after a fifth of many millions."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0019_single_messages")]

    operations = [
        migrations.RunSQL(
            sql="ALTER TABLE delivery_runtarget SET (autovacuum_vacuum_scale_factor = 0.02, "
            "autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02, "
            "autovacuum_vacuum_cost_limit = 1000)",
            reverse_sql="ALTER TABLE delivery_runtarget RESET (autovacuum_vacuum_scale_factor, "
            "autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor, autovacuum_vacuum_cost_limit)",
        ),
    ]
