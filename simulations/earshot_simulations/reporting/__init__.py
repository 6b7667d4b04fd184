"""What commands and pages report with: tables, panels of pictures, runs that may be resumed."""
