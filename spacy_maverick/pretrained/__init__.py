"""Models that bring their weights with them. The default model's files stand here too."""
