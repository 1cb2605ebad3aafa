"""The audit log: what people changed, when, from where and by which door. Rows are added and never changed."""
