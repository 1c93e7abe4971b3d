"""Read the exports of other programs for studies, with who answered what."""
