from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the roles of team members.

    Who could operate may manage, which is what operating was. The release before goes on reading `access`, which is
    kept in step; what it adds meanwhile has the role that reads.
    """

    dependencies = [("accounts", "0024_own_limits_of_services")]

    operations = [
        migrations.AddField(
            "teammate",
            "role",
            models.CharField(
                choices=[("read", "Read"), ("write", "Write"), ("send", "Send"), ("manage", "Manage")],
                db_default="read",
                default="read",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            "teammate",
            "access",
            models.CharField(db_default="read", default="read", editable=False, max_length=10),
        ),
        migrations.RunSQL(
            "UPDATE accounts_teammate SET role = 'manage' WHERE access = 'operate'", migrations.RunSQL.noop
        ),
        migrations.AddConstraint(
            "teammate",
            models.CheckConstraint(
                condition=models.Q(role__in=["read", "write", "send", "manage"]), name="teammate_role_known"
            ),
        ),
    ]
