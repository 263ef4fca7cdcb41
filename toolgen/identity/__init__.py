"""Who is asking, and where their credentials may go."""
