"""The report as one HTML page: data, analysis, contents of its parts, and rendering."""
