"""What people and streams read about tasks: lists, histories, the reason why one does not start."""
