"""What the system tests share: a daemon to start and kill, senders, generated jobs."""
