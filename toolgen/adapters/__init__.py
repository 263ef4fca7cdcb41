"""Front doors: each speaks a wire format, holds no policy, and runs nothing but through a `Runtime`."""
