"""Set metrics: how different several replies are."""
