"""What people look at: tables, later plots and pages."""
