"""The networks of trained dialogue systems, one file each."""
