"""What commands print, and the tables that they write."""
