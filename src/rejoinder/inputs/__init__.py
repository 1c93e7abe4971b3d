"""Convert what users pass as items (files, frames, dictionaries, lists of texts) to items."""
