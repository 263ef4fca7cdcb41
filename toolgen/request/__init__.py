"""From a tool and arguments to exactly the request that would be sent. Nothing here does I/O."""
