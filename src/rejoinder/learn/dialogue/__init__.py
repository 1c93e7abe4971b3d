"""Networks that reply: their data, training, folders and decoding."""
