def totals(text):
    """Sum of the amounts per name. Each line: name,amount"""
    out = {}
    for line in text.strip().split("\n"):
        name, amount = line.split(",")
        out[name] = out.get(name, 0) + int(amount)
    return out
