# Scene 2 of 6. In the line `def price(…`, type `, discount: float` behind `seats: int`.
# Offered: the two calls, the second one in tour2_desk.py. Tab goes there. Next: tour3_colours.ts


def price(seats: int) -> float:
    """Return the price of tickets in euros."""
    return 12.5 * seats


def quote(seats: int, discount: float) -> str:
    share = f" ({discount:.0%} off)" if discount else ""
    return f"{seats} seats: {price(seats):.2f} euros{share}"
