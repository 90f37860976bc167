from money import calc


def lines(things):
    return [f"{name} {calc(price)}" for name, price in things]
