def page_count(items, per_page):
    """How many pages `items` things take."""
    return items // per_page


def page(items, number, per_page):
    """The things on page `number`, the first being 1."""
    start = number * per_page
    return items[start : start + per_page]
