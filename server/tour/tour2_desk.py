# The second file of scene 2: a call of `price`.

from tour2_tickets import price


def sell(name: str, seats: int, discount: float) -> dict[str, object]:
    total = price(seats)
    return {"name": name, "seats": seats, "discount": discount, "total": total}
