"""What waits, who decided, and what already ran: kept in a database, so that it outlives the process."""
