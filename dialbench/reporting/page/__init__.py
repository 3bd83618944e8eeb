"""The report page: one HTML file that needs neither network nor server."""
