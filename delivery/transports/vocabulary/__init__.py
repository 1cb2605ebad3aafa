"""What services call things: addresses, states, codes and errors, and what they mean to us."""
