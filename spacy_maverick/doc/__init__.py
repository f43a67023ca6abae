"""What is read from and written to a `Doc`, without a model."""
