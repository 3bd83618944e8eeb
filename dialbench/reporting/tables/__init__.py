"""Tables: rows, columns, significance and notes."""
