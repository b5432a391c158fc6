"""The games in other libraries, one module a library; each imports its library, and nothing imports them by itself."""
