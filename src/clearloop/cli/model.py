def model() -> None:
    """x"""
