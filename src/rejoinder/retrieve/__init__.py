"""Similar pairs from large pools: for references, and for systems that answer with them."""
