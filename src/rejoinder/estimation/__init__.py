"""Few labels: estimates from some human ratings and a metric's scores of all replies, and plans."""
