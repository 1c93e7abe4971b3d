"""Files and folders: paths that users name, whole outputs, JSON lines, checked parts."""
