"""The report as one HTML page: from material to findings, to what is shown of them, to the page."""
