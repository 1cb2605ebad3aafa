"""People who were erased: since when, and a keyed hash in the place of the address (SPEC K5)."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from accounts.models.recipient import canonical_address


class Migration(migrations.Migration):
    dependencies = [("accounts", "0030_restored_to")]

    operations = [
        migrations.AddField(
            model_name="recipient",
            name="erased_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="When everything about this person was erased. Of the address a keyed hash stays.",
                null=True,
            ),
        ),
        migrations.RemoveConstraint(model_name="recipient", name="recipient_address_canonical"),
        AddConstraintNotValid(
            model_name="recipient",
            constraint=models.CheckConstraint(
                condition=canonical_address() | models.Q(erased_at__isnull=False, address__startswith="erased:"),
                name="recipient_address_canonical",
                violation_error_message="The address is not in the form that its channel asks for.",
            ),
        ),
    ]
