"""What people read: tables, pictures, and one page of HTML."""
