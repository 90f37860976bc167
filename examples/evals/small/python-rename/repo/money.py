TAX = 0.2


def calc(amount):
    return round(amount * (1 + TAX), 2)
