"""What may be given where items are wanted: files, frames, lists of dictionaries."""
