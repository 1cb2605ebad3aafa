"""The limits of an account: where each comes from, what is used, warm-up and slow-down."""
