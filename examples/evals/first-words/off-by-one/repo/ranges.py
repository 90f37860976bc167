def numbers(first, last):
    """All whole numbers from first to last, both included."""
    return list(range(first, last))
