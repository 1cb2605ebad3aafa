"""Let a run of a queue have several items for one recipient: the rule counts the item too.

For all other targets the item is 0, so the rule stays what it was. The index is built while messages are sent, and
takes the place of the old one afterwards.
"""

from django.db import migrations, models

NEW, OLD = "target_once_per_run_and_item", "target_once_per_run"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("delivery", "0028_contents_of_targets")]

    operations = [
        migrations.RunSQL(
            sql=f"CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS {NEW}"
            " ON delivery_runtarget (recipient_id, run_id, item_id)",
            reverse_sql=f"DROP INDEX CONCURRENTLY IF EXISTS {NEW}",
        ),
        migrations.RunSQL(
            sql=f"ALTER TABLE delivery_runtarget ADD CONSTRAINT {NEW} UNIQUE USING INDEX {NEW}",
            reverse_sql=f"ALTER TABLE delivery_runtarget DROP CONSTRAINT {NEW}",
            state_operations=[
                migrations.AddConstraint(
                    model_name="runtarget",
                    constraint=models.UniqueConstraint(fields=("recipient", "run", "item_id"), name=NEW),
                )
            ],
        ),
        migrations.RunSQL(
            sql=f"ALTER TABLE delivery_runtarget DROP CONSTRAINT {OLD}",
            reverse_sql=f"ALTER TABLE delivery_runtarget ADD CONSTRAINT {OLD} UNIQUE (recipient_id, run_id)",
            state_operations=[migrations.RemoveConstraint(model_name="runtarget", name=OLD)],
        ),
    ]
