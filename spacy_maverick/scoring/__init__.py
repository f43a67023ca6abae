"""What clusters are worth: metrics, tables, and pages that show the errors."""
