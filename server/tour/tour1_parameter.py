# Scene 1 of 6. In the line `def dose(…`, change the name `amount` to `litres`, key by key.
# Offered: all uses of the parameter at once. Tab takes them. Next: tour2_tickets.py


def dose(amount: float, hardness: float) -> float:
    """Return the grams of salt that soften the water of a tank."""
    if amount <= 0:
        raise ValueError(f"{amount} l cannot be softened")
    grams = 0.8 * amount * hardness
    return round(grams + 0.02 * amount, 1)


for tank in (40, 75, 120):
    print(tank, dose(amount=tank, hardness=3.5))
