"""The report as one self-contained HTML page: its content, its headline and the page itself."""
